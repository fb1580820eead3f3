// Explanations: the rule, the blocker, the bytes, and a change that was tried and works.
#include "transforms/explain.h"

#include "doctest/doctest.h"
#include "ir/error.h"
#include "support/random_graph.h"
#include "transforms/explain_print.h"
#include "transforms/plan_file.h"

namespace fusec::test {
namespace {

using P = OpPattern;

struct Case {
  AnnotatedGraph g;
  FuseOptions options{.strategy = Strategy::kTvm};

  ValueId input() { return g.graph.add_input("x", TensorType{DType::kFloat32, {4}}); }
  ValueId add(P kind, std::vector<ValueId> operands) { return add_custom(g, kind, std::move(operands)); }
  FusionPlan plan() const { return fuse(g.graph, g.kinds, options); }
  Explanation explain(std::vector<NodeId> nodes) const { return fusec::explain(g.graph, g.kinds, plan(), nodes); }
  std::string text(std::vector<NodeId> nodes) const {
    const FusionPlan p = plan();
    return explanation_text(g.graph, p, fusec::explain(g.graph, g.kinds, p, nodes));
  }
};

// x -> n0 -> n1 -> ...
Case chain_of(const std::vector<P>& kinds) {
  Case c;
  ValueId value = c.input();
  for (const P kind : kinds) value = c.add(kind, {value});
  c.g.graph.outputs = {value};
  return c;
}

}  // namespace

TEST_CASE("explain: one kernel") {
  CHECK(chain_of({P::kOutEwiseFusable, P::kElemwise, P::kElemwise}).text({0, 2}) ==
        "\"n0\", \"n2\": one kernel, fused_custom_out_ewise_fusable_custom_elemwise_custom_elemwise\n"
        "  phase 1: \"n0\" joined \"n1\"\n");
}

TEST_CASE("explain: a complex op and a broadcast follower") {
  CHECK(chain_of({P::kOutEwiseFusable, P::kBroadcast}).text({0, 1}) ==
        "\"n0\", \"n1\": not one kernel\n"
        "  phase 1: \"n0\" did not join \"n1\": it is a complex op (or leads a group that holds one): only elementwise "
        "nodes follow such an op in its group, and one on the way to the post-dominator is not elementwise\n"
        "    rule anchor_needs_elementwise, blocked by \"n1\"; joining would save 32 bytes\n"
        "    what helps: give \"n1\" \"pattern\": \"elemwise\", if that is what it is (now broadcast)\n"
        "  their groups as one kernel would save 32 bytes\n"
        "  they would be one kernel: give \"n1\" \"pattern\": \"elemwise\", if that is what it is (now broadcast)\n");
}

TEST_CASE("explain: of a claim the node that is to blame is named, with its own kind") {
  Case c = chain_of({P::kOutEwiseFusable, P::kOutEwiseFusable, P::kElemwise});
  c.options = {.claims = {PatternClaim{.pattern = "a.pattern", .nodes = {1, 2}}}};
  CHECK(c.explain({0, 2}).obstacles.at(0).would_allow ==
        "nothing that you can set: \"n1\" would have to be elemwise (it is out_ewise_fusable)");
  c.options.claims[0].code = GroupCode::kCublasLt;
  CHECK(c.explain({0, 2}).obstacles.at(0).would_allow ==
        "--disable-pattern=a.pattern may: it gave \"n1\" to a library");
}

TEST_CASE("explain: the smallest limit that would do") {
  Case c = chain_of(std::vector<P>(8, P::kElemwise));
  c.options.max_fused_ops = 4;
  const Explanation e = c.explain({0, 7});
  CHECK(!e.one_kernel);
  CHECK(e.obstacles.at(0).rule == FusionRule::kTooManyNodes);
  CHECK(e.would_allow == std::vector<std::string>{"--max-fused-ops=8"});
  c.options.max_fused_ops = 8;
  CHECK(c.explain({0, 7}).one_kernel);
}

TEST_CASE("explain: outputs, nodes kept apart, several obstacles in a row") {
  Case c = chain_of({P::kElemwise, P::kElemwise, P::kElemwise});
  c.g.graph.outputs.push_back(c.g.graph.nodes[0].first_output);
  c.g.graph.nodes[1].fuse = false;
  const Explanation e = c.explain({2, 0, 2});
  CHECK(e.nodes == std::vector<NodeId>{0, 2});
  REQUIRE(e.obstacles.size() == 1);  // n0 is an output and goes nowhere; what comes after is not reached
  CHECK(e.obstacles[0].rule == FusionRule::kGraphOutput);
  CHECK(e.would_allow.size() == 2);
  c.g.graph.outputs.pop_back();
  c.g.graph.nodes[1].fuse = true;
  CHECK(c.explain({0, 2}).one_kernel);
}

TEST_CASE("explain: an output on one arm of a diamond") {
  Case c;
  const ValueId head = c.add(P::kElemwise, {c.input()});
  const ValueId left = c.add(P::kElemwise, {head}), right = c.add(P::kElemwise, {head});
  c.g.graph.outputs = {c.add(P::kElemwise, {left, right}), left};
  const Explanation e = c.explain({0, 3});
  REQUIRE(e.obstacles.size() == 1);
  CHECK(e.obstacles[0].rule == FusionRule::kNeverMeets);
  CHECK(e.obstacles[0].blocker == 1);
  CHECK(e.would_allow == std::vector<std::string>{"do not return \"n1\" as an output"});
}

TEST_CASE("explain: a node between two that do not fuse is named, not what follows it") {
  Case c;
  const ValueId head = c.add(P::kElemwise, {c.input()});
  const ValueId left = c.add(P::kElemwise, {head}), right = c.add(P::kCommReduce, {head});
  c.g.graph.outputs = {c.add(P::kElemwise, {left, right})};
  const Explanation e = c.explain({0, 1});
  REQUIRE(e.obstacles.size() == 1);
  CHECK(e.obstacles[0].from == 0);
  CHECK(e.obstacles[0].rule == FusionRule::kSimpleBlockedBetween);
  CHECK(e.obstacles[0].blocker == 2);
}

TEST_CASE("explain: every pair of random graphs gets an answer, and every change offered works") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Case c{.g = random_graph(random, {.max_nodes = 14, .fusion_disabled = true})};
    if (random.chance(50)) c.options.max_fused_ops = 1 + random.below(6);
    const FusionPlan plan = c.plan();
    for (NodeId a = 0; a < c.g.graph.nodes.size(); ++a) {
      for (NodeId b = a + 1; b < c.g.graph.nodes.size(); ++b) {
        const Explanation e = fusec::explain(c.g.graph, c.g.kinds, plan, std::vector{a, b});
        REQUIRE(e.one_kernel == (plan.group_of[a] == plan.group_of[b]));
        REQUIRE(e.obstacles.empty() == e.one_kernel);
        for (const Obstacle& o : e.obstacles) {
          REQUIRE(o.rule != FusionRule::kUndecided);
          REQUIRE(o.rule != FusionRule::kJoined);
        }
        REQUIRE(!explanation_text(c.g.graph, plan, e).empty());
      }
    }
    std::size_t edges = 0;
    for (const LedgerEntry& entry : ledger(c.g.graph, c.g.kinds, plan)) {
      REQUIRE(plan.group_of[entry.from] != plan.group_of[entry.to]);
      REQUIRE(entry.rule != FusionRule::kJoined);
      ++edges;
    }
    REQUIRE((edges > 0 || plan.groups.size() >= 1));
  }
}

TEST_CASE("explain: a given plan, the strategy none, an unknown node") {
  Case c = chain_of({P::kElemwise, P::kElemwise});
  const std::string apart = R"({"fusec_plan": 1, "groups": [{"nodes": ["n1"]}, {"nodes": ["n0"]}]})";
  const FusionPlan given = read_plan(apart, "p.json", c.g.graph, c.g.kinds, c.options);
  const Explanation e = fusec::explain(c.g.graph, c.g.kinds, given, std::vector<NodeId>{0, 1});
  REQUIRE(e.obstacles.size() == 1);
  CHECK(e.obstacles[0].rule == FusionRule::kGivenPlan);
  c.options.strategy = Strategy::kUnfused;
  CHECK(c.explain({0, 1}).obstacles.at(0).would_allow == "--strategy=tvm or --strategy=full");
  const std::vector<std::string> names{"n0", "nn1"};
  CHECK_THROWS_WITH_AS(find_nodes(c.g.graph, names), "no such node: found \"nn1\" (hint: did you mean \"n1\"?)", Error);
}

TEST_CASE("explain: nodes that canonicalization took out") {
  const Case c = chain_of({P::kElemwise, P::kElemwise});
  const FusionPlan plan = c.plan();
  const std::vector<NodeId> both{0, 1};
  Explanation e = fusec::explain(c.g.graph, c.g.kinds, plan, both);
  e.absent = {{"table", true}, {"spare", false}};
  CHECK(explanation_text(c.g.graph, plan, e)
            .starts_with("\"table\": in no kernel, its value is a constant and known now\n"
                         "\"spare\": in no kernel, no output needs it\n"
                         "\"n0\", \"n1\": one kernel, "));
  CHECK(explanation_json(c.g.graph, plan, e).find("\"one_kernel\": false") != std::string::npos);
  e = {.absent = {{"table", true}}};
  CHECK(explanation_text(c.g.graph, plan, e) == "\"table\": in no kernel, its value is a constant and known now\n");
}

}  // namespace fusec::test
