// Fields of tuples: which tensor they are, and what groups hand one another where a tuple lies between them.
#include "ir/tuple_field.h"

#include <doctest/doctest.h>

#include "ir/fusion_plan.h"
#include "support/short_model.h"

using namespace fusec;

namespace {

// A plan of groups with these numbers of nodes, in the graph's order.
FusionPlan plan_of(const Graph& graph, const std::vector<std::size_t>& counts) {
  FusionPlan plan{.strategy = Strategy::kTvm};
  NodeId next = 0;
  for (const std::size_t count : counts) {
    plan.groups.emplace_back();
    for (std::size_t i = 0; i < count; ++i) plan.groups.back().nodes.push_back(next++);
  }
  index_groups(graph, plan);
  return plan;
}

std::string names_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (const ValueId v : values) text += (text.empty() ? "" : " ") + graph.value(v).name;
  return text;
}

// "inputs -> outputs" of each group.
std::vector<std::string> interfaces_of(const Graph& graph, const std::vector<std::size_t>& counts) {
  std::vector<std::string> texts;
  for (const GroupInterface& group : group_interfaces(graph, plan_of(graph, counts)))
    texts.push_back(names_of(graph, group.inputs) + " -> " + names_of(graph, group.outputs));
  return texts;
}

}  // namespace

TEST_CASE("a field of a tuple is the tensor that was put in") {
  const Graph graph = test::short_model("x float32 4; z float32 4",
                                        "t = tuple x z; u = tuple t x; v = get_item u {\"index\": 0}; a = get_item v "
                                        "{\"index\": -1}; b = get_item u {\"index\": 1}; y = add a b",
                                        "y");
  const auto field = [&](const char* name) {
    for (ValueId v = 0; v < graph.value_count(); ++v)
      if (graph.value(v).name == name) return graph.value(resolve_tuple(graph, v)).name;
    return std::string();
  };
  CHECK(field("a") == "z");
  CHECK(field("b") == "x");
  CHECK(field("v") == "t");
  CHECK(field("x") == "x");
  CHECK(field("y") == "y");
}

TEST_CASE("groups hand one another fields, never tuples") {
  const Graph graph = test::short_model(
      "x float32 4",
      "h = neg x; t = tuple h x; a = get_item t {\"index\": 0}; b = get_item t {\"index\": 1}; y = add a b", "y");
  using Texts = std::vector<std::string>;
  CHECK(interfaces_of(graph, {5}) == Texts{"x -> y"});
  CHECK(interfaces_of(graph, {1, 1, 1, 1, 1}) == Texts{"x -> h", " -> ", " -> ", " -> ", "h x -> y"});
  CHECK(interfaces_of(graph, {2, 3}) == Texts{"x -> h", "h x -> y"});
  CHECK(interfaces_of(graph, {1, 2, 2}) == Texts{"x -> h", " -> ", "h x -> y"});
  const Graph output = test::short_model("x float32 4", "h = neg x; t = tuple h; a = get_item t {\"index\": 0}", "a");
  CHECK(interfaces_of(output, {1, 1, 1}) == Texts{"x -> h", " -> ", "h -> a"});
  CHECK(interfaces_of(output, {3}) == Texts{"x -> a"});
}
