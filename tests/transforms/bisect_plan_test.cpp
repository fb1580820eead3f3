#include "transforms/bisect_plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "analysis/annotate.h"
#include "ir/text.h"
#include "transforms/fuse.h"
#include "transforms/verify_plan.h"

using namespace fusec;

namespace {

struct Chain {
  Graph graph;
  std::vector<OpPattern> kinds;
  FusionPlan plan;
};

// `count` products, each followed by a relu: as many fusions.
Chain products(int count) {
  std::string text = "model \"m\"\ninput x: float32[8, 8]\ninput w: float32[8, 8]\n";
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    text += fmt::format("m{0}: float32[8, 8] = matmul({1}, w)\nr{0}: float32[8, 8] = relu(m{0})\n", i, last);
    last = fmt::format("r{}", i);
  }
  Chain chain{parse_graph_text(text + "return " + last + "\n"), {}, {}};
  chain.kinds = annotate(chain.graph, PatternSource::kTvm);
  chain.plan = fuse(chain.graph, chain.kinds, {.strategy = Strategy::kTvm});
  return chain;
}

bool has(const Chain& c, const FusionPlan& plan, const char* a, const char* b) {
  return plan.group_of[c.graph.find_node(a)] == plan.group_of[c.graph.find_node(b)];
}

}  // namespace

TEST_CASE("the fusion to blame is found in few tests") {
  const Chain c = products(50);
  REQUIRE(c.plan.groups.size() == 50);
  for (const int guilty : {0, 1, 17, 48, 49}) {
    const std::string m = fmt::format("m{}", guilty), r = fmt::format("r{}", guilty);
    const Bisection found = bisect_fusions(c.graph, c.kinds, c.plan, [&](const FusionPlan& plan) {
      verify_plan(c.graph, c.kinds, plan);
      return !has(c, plan, m.c_str(), r.c_str());
    });
    CHECK(found.outcome == Bisection::Outcome::kFound);
    CHECK(found.group == c.plan.group_of[c.graph.find_node(m)]);
    CHECK(found.alone);
    CHECK(found.tests <= 9);
    CHECK(has(c, found.plan, m.c_str(), r.c_str()));
    CHECK(found.plan.groups.size() == 99);
  }
}

TEST_CASE("a fusion that is to blame only together with another is told as such") {
  const Chain c = products(10);
  const Bisection found = bisect_fusions(c.graph, c.kinds, c.plan, [&](const FusionPlan& plan) {
    return !(has(c, plan, "m2", "r2") && has(c, plan, "m7", "r7"));
  });
  CHECK(found.group == c.plan.group_of[c.graph.find_node("m7")]);
  CHECK(!found.alone);
  CHECK(has(c, found.plan, "m2", "r2"));
}

TEST_CASE("where fusion is not to blame, that is said") {
  const Chain c = products(3);
  CHECK(bisect_fusions(c.graph, c.kinds, c.plan, [](const FusionPlan&) { return true; }).outcome ==
        Bisection::Outcome::kPassesWithAll);
  CHECK(bisect_fusions(c.graph, c.kinds, c.plan, [](const FusionPlan&) { return false; }).outcome ==
        Bisection::Outcome::kFailsWithNone);
}
