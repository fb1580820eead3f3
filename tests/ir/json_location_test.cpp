#include "ir/json_location.h"

#include <doctest/doctest.h>

#include "ir/json_document.h"
#include "ir/text_location.h"

namespace fusec {
namespace {

const std::string kText = R"({
  "fusec": 1, "a/b~c": [10, {"é\n": true}, [], "],{\"" ],
  "nodes": [
    {"name": "Gate \"1\"", "op": "swish", "attrs": {"dim": -1.5e3, "empty": {}}},
    {"op": "relu", "name": "r"}
  ]
})";

std::string at(std::string_view pointer) {
  const JsonLocation place = find_in_json(kText, pointer);
  return kText.substr(place.begin, place.end - place.begin);
}

}  // namespace

TEST_CASE("every value is found where it stands") {
  const JsonDocument document = JsonDocument::parse(kText, "m.json");
  for (std::uint32_t i = 0; i < document.value_count(); ++i) {
    const Json value(document, i);
    CAPTURE(value.pointer());
    const JsonDocument found = JsonDocument::parse(at(value.pointer()), "found");
    CHECK(minified(found.root()) == minified(value));
  }
}

TEST_CASE("a pointer that leads too far ends at what is there") {
  CHECK(at("/nodes/1/attrs/dim") == at("/nodes/1"));
  CHECK(at("/nodes/7") == at("/nodes"));
  CHECK(at("/nodes/x") == at("/nodes"));
  CHECK(at("/fusec/1") == "1");
  for (std::size_t length = 0; length < kText.size(); ++length)  // of text that is cut, whatever there is
    CHECK(find_in_json(std::string_view(kText).substr(0, length), "/nodes/0/attrs/dim").end <= length);
}

TEST_CASE("of two members with one key the second is meant") {
  const JsonLocation place = find_in_json(R"({"a": 1, "a": 2})", "/a");
  CHECK(place.begin == 14);
  CHECK(place.key_begin == 9);
  CHECK(place.key_end == 12);
}

TEST_CASE("what stands deep is found in one pass over the text") {
  const std::size_t depth = 256, open = 4'000'000;
  std::string pointer;
  for (std::size_t i = 0; i < depth; ++i) pointer += "/0";
  const JsonLocation place = find_in_json(std::string(open, '['), pointer);
  CHECK(place.begin == depth);
  CHECK(place.end == open);
  const JsonLocation second = find_in_json(R"({"a": {"b": 1}, "a": {"c": 2}})", "/a/b");
  CHECK(second.begin == 21);  // the second "a" has no "b"
}

TEST_CASE("elements are called by their names") {
  CHECK(named_element(kText, "/nodes/0/attrs/dim") == R"(node "Gate \"1\"")");
  CHECK(named_element(kText, "/nodes/1") == "node \"r\"");
  CHECK(named_element(kText, "/nodes") == "");
  CHECK(named_element(kText, "/fusec") == "");
  CHECK(named_element(R"({"inputs": [{"name": "x"}], "nodes": [{"name": 1}]})", "/inputs/0/shape") == "input \"x\"");
  CHECK(named_element(R"({"inputs": [{"name": "x"}], "nodes": [{"name": 1}]})", "/nodes/0/op") == "");
}

TEST_CASE("places count lines and characters") {
  const std::string_view text = "ab\nä€x\r\n\nend";
  CHECK(place_of(text, 0) == TextLocation{1, 1});
  CHECK(place_of(text, text.find('x')) == TextLocation{2, 3});
  CHECK(place_of(text, text.size()) == TextLocation{4, 4});
  CHECK(line_of(text, 2) == "ä€x");
  CHECK(line_of(text, 3) == "");
  CHECK(line_of(text, 4) == "end");
  CHECK(line_of(text, 5) == "");
}

}  // namespace fusec
