#include "transforms/patterns/pattern_text.h"

#include <doctest/doctest.h>

#include <set>

#include "fusec/error.h"
#include "transforms/patterns/builtin_patterns.h"
#include "transforms/patterns/pattern_list.h"

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
  check_error("pattern a.b match relu(x) & becomes group", {"belongs to no word"});
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

TEST_CASE("conditions stand side by side, with commas, or with and between them") {
  for (const char* where : {"number(s) not greater(s, 5)", "number(s), not greater(s, 5)",
                            "number(s) and not greater(s, 5)", "number(s)\n where not greater(s, 5)"}) {
    CAPTURE(where);
    const auto patterns = parse_patterns(
        "pattern a.b match mul(tanh(x), s) where " + std::string(where) + " becomes group", "p.patterns");
    REQUIRE(patterns.size() == 1);
    REQUIRE(patterns[0].conditions.size() == 2);
    CHECK(patterns[0].conditions[0].text == "number(s)");
    CHECK(patterns[0].conditions[1].text == "not greater(s, 5)");
    CHECK(patterns[0].conditions[1].negated);
  }
  check_error("pattern a.b match relu(x)\n where tensor(x),\n becomes group", {"line 3, column 2", "a condition"});
  check_error("pattern a.b match relu(x)\n where tensor(x) and", {"end of the file", "a condition"});
  check_error("pattern a.b match relu(x) where tensor(x) or data(x) becomes group", {"no such condition", "\"or\""});
  check_error("pattern a.b match relu(x) where tensor(x) beocmes group", {"did you mean \"becomes\"?"});
  check_error("pattern a.b where tensor(x) match relu(x) becomes group", {"where before match"});
}

TEST_CASE("what is wrong in a condition is told where it stands") {
  check_error("pattern a.b\n match relu(value)\n where dtype(valeu, float16)\n becomes group",
              {"line 3, column 14", "no name of the match", "found \"valeu\"", "expected a name of the match",
               "did you mean \"value\"?"});
  check_error("pattern a.b match relu(x)\n where dtype(x, float16, float17) becomes group",
              {"line 2, column 26", "found \"float17\"", "a dtype"});
  check_error("pattern a.b match relu(x)\n where tensor(x), made_by(x, reluu) becomes group",
              {"line 2, column 30", "found \"reluu\"", "an op"});
  check_error("pattern a.b match relu(x)\n where rank(x, 2.5) becomes group", {"line 2, column 16", "a whole number"});
  check_error("pattern a.b match relu(x)\n where rank(x, inf) becomes group", {"line 2, column 16", "a whole number"});
  check_error("pattern a.b match relu(x)\n where rank(x) becomes group",
              {"line 2, column 8", "rank takes 2 arguments"});
  check_error("pattern a.b match relu(x)\n where dtyp(x, float16) becomes group",
              {"line 2, column 8", "did you mean \"dtype\"?"});
}

TEST_CASE("what is wrong with a whole pattern is told where it stands") {
  check_error("pattern a.b\n match relu(x) |\n x becomes group", {"line 3, column 2", "does not begin with a node"});
  check_error("pattern a.b\n match relu(exp(\n ~x)) becomes relu(x)", {"line 3, column 2", "looks through"});
  check_error("pattern a.b\n match relu(x)\npattern a.c", {"line 3, column 1", "a.b", "without becomes"});
  check_error("pattern a.b\n priority 3\n", {"line 3, column 1", "a.b", "without match"});
  check_error("pattern a.b match relu(x)\n attributes a = x\n becomes exp(x)", {"line 2, column 2", "of groups"});
  for (const char* open : {"_", "~x", "(x | relu(x))", "relu(x)?"})
    check_error("pattern a.b match relu(exp(x)) becomes exp(\n" + std::string(open) + ")",
                {"line 2, column", "leaves open"});
}

TEST_CASE("operands that an op does not have, and numbers that nothing holds") {
  check_error("pattern a.b match relu(x,\n 5, alpha) becomes group",
              {"line 2, column 2", "relu has no operand 2", "x"});
  check_error("pattern a.b match relu(x) becomes exp(x, x)", {"exp has no operand 2"});
  CHECK(error_of("pattern a.b match concat(x, y, z, dim=1) becomes group").empty());
  check_error("pattern a.b match mul(x,\n 1e999) becomes group", {"line 2, column 2", "too large", "\"1e999\""});
  check_error("pattern a.b match mul(x, -1e999) becomes group", {"too large"});
  check_error("pattern a.b match softmax(x, dim=99999999999999999999) becomes group", {"too large", "int64"});
  CHECK(error_of("pattern a.b match mul(x, -inf) where less(x, inf) becomes group").empty());
}

TEST_CASE("a clause without what belongs to it, twice, or in the wrong place") {
  check_error("pattern a.b match relu(x)\n where\n becomes group",
              {"line 3, column 2", "found \"becomes\"", "a condition"});
  check_error("pattern a.b match relu(x)\n where", {"end of the file", "a condition"});
  check_error("pattern a.b match relu(x)\n where 5 becomes group", {"line 2, column 8", "found \"5\"", "a condition"});
  check_error("pattern a.b match relu(x)\n where not becomes group", {"line 2, column 12", "no such condition"});
  check_error("pattern a.b\n match becomes group", {"line 2, column 8", "\"becomes\"", "a term"});
  check_error("pattern a.b match relu(x)\n becomes", {"end of the file", "group, call, or an op"});
  check_error("pattern a.b match relu(x)\n becomes x", {"line 2, column 10", "group, call, or an op"});
  check_error("pattern a.b match relu(x)\n becomes 1", {"line 2, column 10", "group, call, or an op"});
  check_error("pattern a.b match relu(x)\n becomes call", {"end of the file", "a library"});
  check_error("pattern a.b match relu(x) escapes\n becomes group", {"line 2, column 2", "a name"});
  check_error("pattern a.b escapes x match relu(x) becomes group", {"escapes before match"});
  check_error("pattern a.b match relu(x) attributes\n becomes group", {"'='"});
  check_error("pattern a.b match relu(x) attributes a x becomes group", {"'='", "\"x\""});
  check_error("pattern a.b priority\n match relu(x) becomes group", {"line 2, column 2", "a number"});
  check_error("pattern a.b priority 1.5 match relu(x) becomes group", {"no whole number", "\"1.5\""});
  check_error("pattern a.b match relu(x) 5 becomes group", {"found \"5\"", "a clause"});
  check_error("pattern a.b match relu(x) becomes group relu(x)", {"no such clause", "\"relu\""});
  check_error("pattern a.b match relu(x) becomse group", {"no such clause", "did you mean \"becomes\"?"});
  check_error("pattern a.b match relu(x) becomes group\n becomes group", {"line 2, column 2", "a second becomes"});
  check_error("pattern a.b match relu(x)\n match exp(x) becomes group", {"line 2, column 2", "a second match"});
  check_error("pattern a.b match relu(x) becomes exp(x)\n bind_constants", {"line 2, column 2", "bound to groups"});
  check_error("pattern\n", {"the pattern's name"});
  check_error("define\n", {"the name of a form"});
  check_error("define where(x) = relu(x)", {"a word of the language"});
  check_error("define f(x, x) = add(x, x)", {"two parameters of one name"});
  check_error("define f(x) = g(x)", {"no such op"});
  check_error("pattern a.b match relu(x)) becomes group", {"found \")\"", "a clause"});
  CHECK(error_of("pattern a.b match where(c, x, 0) where tensor(c) becomes group").empty());
}

TEST_CASE("what no node of the op can be is no pattern of it") {
  check_error("pattern a.b match mul(\nx) becomes group", {"line 1, column 19", "mul has an operand b"});
  check_error("pattern a.b match linear(x) becomes group", {"linear has an operand"});
  check_error("pattern a.b match relu(x) becomes add(x)", {"add has an operand"});
  check_error("pattern a.b match softmax(x,\n dim=\"last\") becomes group", {"line 2, column 6", "an integer"});
  check_error("pattern a.b match gelu(x, approximate=\"erf\") becomes group", {"\"none\" or \"tanh\""});
  check_error("pattern a.b match cast(x, dtype=\"float17\") becomes group", {"a dtype"});
  check_error("pattern a.b match sum(x, dim=1, keepdim=1) becomes group", {"true or false"});
  check_error("pattern a.b match softmax(x, din=1) becomes group", {"did you mean \"dim\"?"});
}

TEST_CASE("two patterns of one name are refused") {
  const std::string text = "pattern a.b match relu(x) becomes group\n";
  check_error(text + text, {"line 2, column 9", "two patterns of one name", "\"a.b\""});
  const auto clash_of = [&](const char* first_file, const char* second_file) -> std::string {
    auto patterns = parse_patterns(text, first_file);
    for (FusionPattern& p : parse_patterns(text, second_file)) patterns.push_back(std::move(p));
    try {
      ordered(std::move(patterns));
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  CHECK(clash_of("p", "q") ==
        "p: two patterns of one name: found \"a.b\", expected another name than a pattern of q has");
  CHECK(clash_of("p", "") ==
        "p: two patterns of one name: found \"a.b\", expected another name than a built-in pattern has");
  CHECK(clash_of("", "q") ==
        "q: two patterns of one name: found \"a.b\", expected another name than a built-in pattern has");
}

TEST_CASE("the build's table has every built-in pattern, whole") {
  const std::vector<FusionPattern> patterns = builtin_patterns();
  const std::span<const BuiltinPattern> table = builtin_pattern_table();
  REQUIRE(table.size() == patterns.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    CAPTURE(patterns[i].name);
    const ListedPattern listed(table[i]);
    CHECK(listed.name() == patterns[i].name);
    CHECK(listed.priority() == patterns[i].priority);
    CHECK((listed.becomes() == patterns[i].becomes));
    CHECK(!listed.needed_ops().empty());
    CHECK(listed.is_builtin());
    CHECK(listed->summary == patterns[i].summary);
    CHECK(listed->match_text == patterns[i].match_text);
    CHECK(listed->becomes_text == patterns[i].becomes_text);
    CHECK(listed->conditions.size() == patterns[i].conditions.size());
    CHECK(static_cast<bool>(listed->attributes_getter) == static_cast<bool>(patterns[i].attributes_getter));
  }
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
