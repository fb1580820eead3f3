#include "ir/json_document.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ir/error.h"
#include "ir/utf8.h"

namespace fusec {
namespace {

JsonDocument parsed(const std::string& text) {
  return JsonDocument::parse(text, "t.json");
}

JsonKind kind_of(const std::string& text) {
  return parsed(text).root().kind();
}

}  // namespace

TEST_CASE("how a number was written is kept") {
  CHECK(kind_of("2") == JsonKind::kInteger);
  CHECK(kind_of("-0") == JsonKind::kInteger);
  CHECK(kind_of("2.0") == JsonKind::kFloat);
  CHECK(kind_of("2e0") == JsonKind::kFloat);
  CHECK(kind_of("9223372036854775807") == JsonKind::kInteger);
  CHECK(kind_of("-9223372036854775808") == JsonKind::kInteger);
  CHECK(kind_of("9223372036854775808") == JsonKind::kUnsigned);
  CHECK(kind_of("18446744073709551615") == JsonKind::kUnsigned);
  CHECK(kind_of("18446744073709551616") == JsonKind::kHuge);
  CHECK(kind_of("-9223372036854775809") == JsonKind::kHuge);
  CHECK(parsed("-9223372036854775808").root().integer() == -9223372036854775807 - 1);
  CHECK(parsed("18446744073709551615").root().unsigned_() == 18446744073709551615u);
  CHECK(parsed("18446744073709551616").root().number() == 18446744073709551616.0);
}

// What the scanner takes and what nlohmann's parser is asked of is read alike.
TEST_CASE("escapes, numbers and blanks mean what JSON says") {
  CHECK(parsed(R"("a\\\"\/\b\f\n\r\tz")").root().text() == "a\\\"/\b\f\n\r\tz");
  CHECK(parsed(R"("\u00e9\u20AC\ud83d\ude00")").root().text() == "\u00e9\u20ac\U0001f600");
  CHECK(parsed("\"\u00e9\"").root().text() == "\u00e9");
  CHECK(parsed(" \t\r\n[ 1 , 2 ]\n").root().size() == 2);
  CHECK(parsed("[]").root().size() == 0);
  CHECK(parsed("{ }").root().size() == 0);
  CHECK(parsed("-0.5e-3").root().number() == -0.5e-3);
  CHECK(parsed("1E+2").root().number() == 100);
  CHECK(parsed("5e-324").root().number() == 5e-324);
  CHECK(parsed("1e-400").root().number() == 0);  // below all doubles: asked of nlohmann's parser
  for (const char* wrong : {" ",
                            "[1,]",
                            "[,1]",
                            R"({"a":1,})",
                            R"({"a" 1})",
                            "{a:1}",
                            "[1 2]",
                            "01",
                            "-",
                            "1.",
                            ".5",
                            "+1",
                            "1e",
                            "0x10",
                            "tru",
                            "nul",
                            "\"",
                            R"("\x")",
                            R"("\u12g4")",
                            "[1]]",
                            "[1",
                            R"("\ud800")",
                            R"("\udc00")",
                            R"({"a":1)",
                            "1 2",
                            "'a'",
                            "1e999",
                            "[1}",
                            R"({"a":1])",
                            "\"\n\"",
                            "",
                            "-a",
                            R"({"a":1,"a":2})"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parsed(wrong), Error);
  }
}

TEST_CASE("members and elements come in the order of the file") {
  const JsonDocument document = parsed(R"({"b": [1, [2, 3], {"x": null}, 4], "a": {}, "c": "s"})");
  std::string keys;
  for (const Json member : document.root()) keys += std::string(member.key_text()) + member.description() + ";";
  CHECK(keys == "ban array;aan empty object;c\"s\";");
  std::vector<std::string> pointers;
  for (const Json item : *document.root().begin()) pointers.push_back(item.pointer());
  CHECK(pointers == std::vector<std::string>{"/b/0", "/b/1", "/b/2", "/b/3"});
  const Json third = *++ ++(*document.root().begin()).begin();
  CHECK((*third.begin()).pointer() == "/b/2/x");
  CHECK(document.root().pointer() == "");
}

TEST_CASE("pointers escape what RFC 6901 escapes, and control characters") {
  const JsonDocument document = parsed(R"({"a/b~c\n": 1})");
  CHECK((*document.root().begin()).pointer() == "/a~1b~0c\\u000a");
}

TEST_CASE("minified text has sorted keys and keeps the way of writing numbers") {
  CHECK(minified(parsed(R"( { "z" : [ 1 , 2.0, 1e-5 ], "a": {"q": null, "b": "x\"\u0000y"}, "m": true } )").root()) ==
        R"({"a":{"b":"x\"\u0000y","q":null},"m":true,"z":[1,2.0,1e-05]})");
  CHECK(minified(parsed("36893488147419103232").root()) == "36893488147419103232");
}

TEST_CASE("json_number reads back to the same double and never as an integer") {
  for (const double v : {0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, 123456789.0, 1e22}) {
    const JsonDocument document = parsed(json_number(v));
    CHECK(document.root().is(JsonKind::kFloat));
    CHECK(document.root().number() == v);
  }
}

TEST_CASE("strings are stored once") {
  const JsonDocument document = parsed(R"(["x", {"x": "x"}, "\u0078"])");
  CHECK(document.strings().size() == 1);
  CHECK(document.strings().find("x") == 0);
  CHECK(document.strings().find("y") == kNoString);
}

TEST_CASE("UTF-8") {
  const auto bad_at = [](std::string_view text) { return first_bad_utf8(text); };
  for (const char* good : {"", "plain text, long enough for a block", "\xc2\x80\xdf\xbf",
                           "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"})
    CHECK(bad_at(good) == std::string_view(good).size());
  CHECK(bad_at("ab\x80") == 2);
  CHECK(bad_at("\xc1\xbf") == 0);          // overlong
  CHECK(bad_at("\xe0\x9f\xbf") == 0);      // overlong
  CHECK(bad_at("\xed\xa0\x80") == 0);      // a surrogate
  CHECK(bad_at("\xf0\x8f\xbf\xbf") == 0);  // overlong
  CHECK(bad_at("\xf4\x90\x80\x80") == 0);  // above U+10FFFF
  CHECK(bad_at("12345678\xf0\x90\x80") == 8);
}

}  // namespace fusec
