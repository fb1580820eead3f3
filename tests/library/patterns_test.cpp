// Fusion patterns through the public API: a user's own, with checks and attributes beyond their text.
#include <doctest/doctest.h>

#include <algorithm>

#include "fusec/fusec.h"

using namespace fusec;

namespace {

Model gated_unit(double factor) {
  ModelBuilder b("glu");
  const auto gate = b.input("gate", "float16", {4, 8});
  const auto up = b.input("up", "float16", {4, 8});
  const auto scaled = b.op("mul", {gate, factor}, {}, "scaled");
  const auto act = b.op("mul", {gate, b.op("sigmoid", {scaled}, {}, "sig")}, {}, "act");
  b.output(b.op("mul", {act, up}, {}, "h"));
  return b.build();
}

const std::string kPattern =
    "pattern mine.glu priority 1000 \"a gated unit with a factor\"\n"
    "  match mul(act: mul(gate, sigmoid(mul(gate, factor))), up)\n"
    "  where number(factor)\n  attributes alpha = factor\n  becomes group\n";

std::vector<Group> groups(const Model& model, PatternText pattern) {
  Options options;
  options.patterns = {std::move(pattern)};
  return partition(model, options);
}

}  // namespace

TEST_CASE("a user's pattern claims its group, and says its attributes") {
  const auto made = groups(gated_unit(1.702), {.text = kPattern, .check = nullptr, .attributes = nullptr});
  REQUIRE(made.size() == 1);
  CHECK(made[0].claimed_by == "mine.glu");
  REQUIRE(made[0].attributes.size() == 1);
  CHECK(made[0].attributes[0] == std::pair<std::string, std::string>("alpha", "1.702"));
}

TEST_CASE("a check sees the root, the nodes, the values and their uses, and may refuse") {
  std::vector<MatchedPattern> seen;
  PatternText pattern{.text = kPattern,
                      .check =
                          [&](const MatchedPattern& match) {
                            seen.push_back(match);
                            return std::string(match.values.empty() ? "" : "not today");
                          },
                      .attributes = nullptr};
  const auto made = groups(gated_unit(1.702), pattern);
  CHECK(std::ranges::none_of(made, [](const Group& g) { return g.claimed_by == "mine.glu"; }));
  REQUIRE(!seen.empty());
  CHECK(seen[0].pattern == "mine.glu");
  CHECK(seen[0].root == "h");
  CHECK(seen[0].nodes == std::vector<std::string>{"scaled", "sig", "act", "h"});
  const auto gate = std::ranges::find(seen[0].values, std::string("gate"), &MatchedValue::name);
  REQUIRE(gate != seen[0].values.end());
  CHECK(gate->value == "gate");
  CHECK(gate->type.dtype == "float16");
  CHECK(gate->producer.empty());
  CHECK(gate->users == std::vector<std::string>{"scaled", "act"});
  const auto act = std::ranges::find(seen[0].values, std::string("act"), &MatchedValue::name);
  REQUIRE(act != seen[0].values.end());
  CHECK(act->producer == "act");
}

TEST_CASE("attributes may come from code") {
  PatternText pattern{.text = kPattern, .check = nullptr, .attributes = [](const MatchedPattern& match) {
                        return std::vector<std::pair<std::string, std::string>>{{"root", match.root}};
                      }};
  const auto made = groups(gated_unit(2), pattern);
  REQUIRE(made.size() == 1);
  CHECK(made[0].attributes.back() == std::pair<std::string, std::string>("root", "h"));
}

TEST_CASE("what is wrong with patterns is a fusec::Error at the call") {
  Options options;
  options.patterns = {{.text = "pattern mine.p match reluu(x) becomes group", .check = nullptr, .attributes = nullptr}};
  CHECK_THROWS_AS(partition(gated_unit(1), options), Error);
  options.patterns = {{.text = kPattern, .check = nullptr, .attributes = nullptr},
                      {.text = kPattern, .check = nullptr, .attributes = nullptr}};
  CHECK_THROWS_AS(partition(gated_unit(1), options), Error);
  options.patterns.clear();
  options.disabled_patterns = {"fusec.softmx"};
  CHECK_THROWS_WITH_AS(partition(gated_unit(1), options), doctest::Contains("fusec.softmax"), Error);
  options.disabled_patterns.clear();
  options.pattern_files = {"/nowhere/p.patterns"};
  CHECK_THROWS_AS(partition(gated_unit(1), options), Error);
}

TEST_CASE("the patterns are listed in the order in which they are tried") {
  const auto list = patterns_in_order();
  REQUIRE(!list.empty());
  CHECK(std::ranges::is_sorted(list, std::ranges::greater(), &PatternInfo::priority));
  Options options;
  options.disabled_patterns = {"all"};
  CHECK(patterns_in_order(options).empty());
}
