#include "ir/inferred_types.h"

#include <doctest/doctest.h>

#include "ir/read.h"

namespace fusec {
namespace {

// Two sums of a[m] and b[n], whose lengths the bounds leave open.
Graph graph_of_two_sums() {
  return read_model_text(R"({"fusec": 1, "symbols": {"m": {}, "n": {}},
    "inputs": [{"name": "a", "dtype": "float32", "shape": ["m"]}, {"name": "b", "dtype": "float32", "shape": ["n"]}],
    "nodes": [{"name": "first", "op": "add", "inputs": ["a", "b"]}, {"name": "second", "op": "add", "inputs": ["a", "b"]},
              {"name": "half", "op": "mul", "inputs": ["a", 0.5]}, {"name": "twice", "op": "mul", "inputs": ["a", 2]}],
    "outputs": ["first", "second", "half", "twice"]})",
                         "model.json", "");
}

TEST_CASE("equal nodes make one check at launch") {
  const Graph graph = graph_of_two_sums();
  REQUIRE(graph.checks.size() == 1);
  CHECK(graph.tensor(graph.outputs[0]) == graph.tensor(graph.outputs[1]));
}

TEST_CASE("types are remembered by op, operand types and attributes") {
  const Graph graph = graph_of_two_sums();
  const Node& sum = graph.nodes[0];
  InferredTypes known;
  CHECK(known.find(graph, *sum.op, sum.inputs, sum.attributes) == nullptr);
  known.add({7});
  const std::vector<TypeId>* found = known.find(graph, *sum.op, sum.inputs, sum.attributes);
  REQUIRE(found != nullptr);
  CHECK(*found == std::vector<TypeId>{7});

  const std::vector<ValueId> swapped{sum.inputs[1], sum.inputs[0]};
  CHECK(known.find(graph, *sum.op, swapped, sum.attributes) == nullptr);
  CHECK(known.find(graph, *sum.op, sum.inputs, sum.attributes + 1) == nullptr);
}

TEST_CASE("types of a node with a number as an operand are not remembered") {
  const Graph graph = graph_of_two_sums();
  const Node& half = graph.nodes[2];
  InferredTypes known;
  CHECK(known.find(graph, *half.op, half.inputs, half.attributes) == nullptr);
  known.add({7});
  CHECK(known.find(graph, *half.op, half.inputs, half.attributes) == nullptr);
}

}  // namespace
}  // namespace fusec
