#include "transforms/patterns/pattern_text.h"

#include <doctest/doctest.h>

#include <set>

#include "fusec/error.h"
#include "transforms/patterns/builtin_patterns.h"

using namespace fusec;

namespace {

std::string error_of(const std::string& text) {
  try {
    parse_patterns(text, "p.patterns");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void check_error(const std::string& text, std::initializer_list<const char*> parts) {
  const std::string message = error_of(text);
  CAPTURE(text);
  CAPTURE(message);
  CHECK(message.find("p.patterns") != std::string::npos);
  for (const char* part : parts) CHECK(message.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("a pattern is read with all that it declares") {
  const auto patterns = parse_patterns(R"(
# a comment
define gate_of(g) = silu(g) | mul(g, sigmoid(g))
pattern my.glu priority 7 "a gated unit"
  match   mul(act: gate_of(~gate), up)
  where   dtype(up, float16, bfloat16) not same_shape(gate, up)
  escapes act
  attributes factor = gate
  becomes group
pattern my.other match relu(relu(x)) becomes relu(x)
)",
                                       "p");
  REQUIRE(patterns.size() == 2);
  const FusionPattern& p = patterns[0];
  CHECK(p.name == "my.glu");
  CHECK(p.priority == 7);
  CHECK(p.summary == "a gated unit");
  CHECK(p.match_text == "mul(act: gate_of(~gate), up)");
  CHECK(p.conditions.size() == 2);
  CHECK(p.conditions[1].negated);
  CHECK(p.escaping.size() == 1);
  CHECK(p.becomes == Becomes::kGroup);
  CHECK(patterns[1].becomes == Becomes::kRewrite);
  const PatternList list = ordered(patterns);
  CHECK(list[0]->name == "my.glu");
}

TEST_CASE("what is no pattern is told by line and column") {
  check_error("pattern swiglu match relu(x) becomes group", {"line 1, column 9", "backend"});
  check_error("pattern a.b\n  match reluu(x) becomes group",
              {"line 2, column 9", "no such op", "did you mean \"relu\"?"});
  check_error("pattern a.b match relu(x)", {"without becomes"});
  check_error("pattern a.b becomes group", {"becomes before match"});
  check_error("pattern a.b match relu(x becomes group", {"expected"});
  check_error("pattern a.b match x becomes group", {"does not begin with a node"});
  check_error("pattern a.b match relu(x) where dtyp(x, float16) becomes group", {"no such condition", "dtype"});
  check_error("pattern a.b match relu(x) where dtype(x, float17) becomes group", {"no dtype"});
  check_error("pattern a.b match relu(x) where rank(y, 2) becomes group", {"no name of the match"});
  check_error("pattern a.b match relu(x) becomes relu(y)", {"a name that the match does not have"});
  check_error("pattern a.b match relu(~x) becomes relu(x)", {"looks through"});
  check_error("pattern a.b match softmax(x, dimm=1) becomes group", {"no such attribute"});
  check_error("pattern a.b match relu(x) becomes call cudnn", {"no such library", "cublaslt"});
  check_error("pattern a.b match relu(\"x\") becomes group", {"a term"});
  check_error("pattern a.b \"text without end", {"a text without end"});
  check_error("pattern a.b match relu(x) ; becomes group", {"belongs to no word"});
  check_error("define f(x) = relu(x)\npattern a.b match f(x, y) becomes group", {"wrong number of arguments"});
  check_error("patern a.b", {"pattern or define", "\"patern\""});
}

TEST_CASE("a pattern that grows without end is refused in time") {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "define f" + std::to_string(i) + "(x) = add(" + (i ? "f" + std::to_string(i - 1) + "(x)" : "x") + ", " +
            (i ? "f" + std::to_string(i - 1) + "(x)" : "x") + ")\n";
  check_error(text + "pattern a.b match f39(x) becomes group", {"too large"});
  check_error("pattern a.b match " + std::string(5000, '(') + "relu(x)", {"too deep"});
}

TEST_CASE("two patterns of one name are refused") {
  auto patterns =
      parse_patterns("pattern a.b match relu(x) becomes group\npattern a.b match exp(x) becomes group", "p");
  CHECK_THROWS_AS(ordered(std::move(patterns)), Error);
}

TEST_CASE("every built-in pattern is read, has a summary and a name of its own") {
  std::set<std::string> names;
  for (const FusionPattern& p : builtin_patterns()) {
    CAPTURE(p.name);
    CHECK(names.insert(p.name).second);
    CHECK(!p.summary.empty());
    CHECK(p.file.empty());
  }
}
