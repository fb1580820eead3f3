// Edited plans: what is accepted, and the message for each way in which a plan can be illegal.
#include "transforms/plan_file.h"

#include "doctest/doctest.h"
#include "ir/error.h"
#include "support/random_graph.h"

namespace fusec::test {
namespace {

// x -> n0 -> n1 -> n2 -> n3, n2 opaque
AnnotatedGraph chain() {
  AnnotatedGraph g;
  g.graph.name = "chain";
  ValueId value = g.graph.add_input("x", TensorType{DType::kFloat32, {4}});
  for (const OpPattern kind : {OpPattern::kElemwise, OpPattern::kInjective, OpPattern::kOpaque, OpPattern::kElemwise}) {
    value = add_custom(g, kind, {value});
  }
  g.graph.outputs = {value};
  return g;
}

FusionPlan read(const std::string& text, FuseOptions options = {.strategy = Strategy::kTvm}) {
  const AnnotatedGraph g = chain();
  return read_plan(text, "p.json", g.graph, g.kinds, options);
}

// The message for a plan with these groups.
std::string fault(const std::string& groups, FuseOptions options = {.strategy = Strategy::kTvm}) {
  try {
    read("{\"fusec_plan\": 1, \"groups\": " + groups + "}", options);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("plan file: groups in any order, names made up where missing") {
  const FusionPlan plan = read(R"({"fusec_plan": 1, "model": "chain", "strategy": "tvm", "max_args": null, "groups": [
      {"nodes": ["n3"]}, {"nodes": ["n1", "n0"], "name": "custom_opaque"}, {"nodes": ["n2"]}]})");
  REQUIRE(plan.groups.size() == 3);
  CHECK(plan.groups[0].nodes == std::vector<NodeId>{0, 1});
  CHECK(plan.groups[0].name == "custom_opaque");
  CHECK(plan.groups[0].pattern == OpPattern::kInjective);
  CHECK(plan.groups[1].name == "custom_opaque_b");
  CHECK(plan.groups[2].name == "custom_elemwise");
  CHECK(plan.group_of == std::vector<GroupId>{0, 0, 1, 2});
}

TEST_CASE("plan file: illegal plans") {
  CHECK(fault(R"([{"nodes": ["n0", "n1"]}, {"nodes": ["n2"]}])") == "p.json: illegal plan: node \"n3\" is in no group");
  CHECK(fault(R"([{"name": "a", "nodes": ["n0", "n1"]}, {"name": "b", "nodes": ["n1", "n2"]}, {"nodes": ["n3"]}])") ==
        "p.json: illegal plan, group \"b\": node \"n1\" is in group \"a\" already");
  CHECK(fault(R"([{"name": "a", "nodes": ["n0", "n0"]}, {"nodes": ["n1"]}, {"nodes": ["n2"]}, {"nodes": ["n3"]}])") ==
        "p.json: illegal plan, group \"a\": node \"n0\" stands twice in the group");
  CHECK(
      fault(
          R"([{"name": "a", "nodes": ["n0", "n3"]}, {"name": "b", "nodes": ["n1"]}, {"nodes": ["n2"], "name": "c"}])") ==
      "p.json: illegal plan, group \"a\": groups need each other's results: \"a\" needs \"c\" needs \"b\" needs \"a\"");
  CHECK(fault(R"([{"nodes": ["n0"]}, {"name": "a", "nodes": ["n1", "n2"]}, {"nodes": ["n3"]}])") ==
        "p.json: illegal plan, group \"a\": node \"n2\" is opaque: it fuses with nothing");
  CHECK(fault(R"([{"name": "a", "nodes": ["n0", "n1"]}, {"nodes": ["n2"]}, {"nodes": ["n3"]}])",
              {.strategy = Strategy::kTvm, .max_fused_ops = 1}) ==
        "p.json: illegal plan, group \"a\": the group has 2 nodes, the limit is 1");
  CHECK(fault(R"([{"name": "a", "nodes": ["n0", "n1"]}, {"nodes": ["n2"]}, {"nodes": ["n3"]}])",
              {.strategy = Strategy::kTvm, .max_args = 1}) ==
        "p.json: illegal plan, group \"a\": the group's kernel has 2 arguments, the limit is 1");
}

TEST_CASE("plan file: what is no plan") {
  CHECK(fault(R"([{"nodes": ["n9"]}])") == "p.json#/groups/0/nodes/0: no such node in the graph: found \"n9\"");
  CHECK(fault(R"([{"nodes": []}])") ==
        "p.json#/groups/0: a group without nodes: found an object, expected at least one");
  CHECK(fault(R"([{"name": "a b", "nodes": ["n0"]}])") ==
        "p.json#/groups/0/name: a kernel cannot be called so: found \"a b\", expected letters, digits and '_', 128 at "
        "most");
  CHECK(fault(R"([{"node": ["n0"]}])") ==
        "p.json#/groups/0/node: unknown key: expected name, nodes, recomputed or prepared");
  CHECK_THROWS_WITH_AS(read("{\"groups\": []}"), "p.json: missing key \"fusec_plan\": found an object", Error);
  CHECK_THROWS_WITH_AS(read("{\"fusec_plan\": 2, \"groups\": []}"),
                       "p.json#/fusec_plan: wrong plan version: found 2, expected 1", Error);
  CHECK_THROWS_WITH_AS(read("{\"fusec_plan\": 1, \"strategy\": \"full\", \"groups\": []}"),
                       "p.json#/strategy: the plan is of another strategy: found \"full\", expected tvm", Error);
}

}  // namespace fusec::test
