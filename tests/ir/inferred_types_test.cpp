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

TEST_CASE("types are remembered by op, operand types, attributes and declared types") {
  const Graph graph = graph_of_two_sums();
  const Node& sum = graph.nodes[0];
  InferredTypes known;
  CHECK(known.find(graph, sum, {}) == nullptr);
  known.add({7});
  const std::vector<TypeId>* found = known.find(graph, sum, {});
  REQUIRE(found != nullptr);
  CHECK(*found == std::vector<TypeId>{7});

  Node other = sum;
  std::swap(other.inputs[0], other.inputs[1]);
  CHECK(known.find(graph, other, {}) == nullptr);
  other = sum;
  ++other.attributes;
  CHECK(known.find(graph, other, {}) == nullptr);
  CHECK(known.find(graph, sum, std::vector<TypeId>{1}) == nullptr);
}

TEST_CASE("types of a node with a number as an operand are not remembered") {
  const Graph graph = graph_of_two_sums();
  const Node& half = graph.nodes[2];
  InferredTypes known;
  CHECK(known.find(graph, half, {}) == nullptr);
  known.add({7});
  CHECK(known.find(graph, half, {}) == nullptr);
}

// The declared shape is the one way to know the size of a gathered tensor.
TEST_CASE("equal collectives have the types that each declares") {
  const Graph graph = read_model_text(R"({"fusec": 1, "inputs": [{"name": "x", "dtype": "float16", "shape": [4, 8]}],
    "nodes": [{"name": "a", "op": "all_gather", "inputs": ["x"], "attrs": {"group": "tp", "dim": 0},
               "outputs": [{"name": "a", "dtype": "float16", "shape": [8, 8]}]},
              {"name": "b", "op": "all_gather", "inputs": ["x"], "attrs": {"group": "tp", "dim": 0},
               "outputs": [{"name": "b", "dtype": "float16", "shape": [16, 8]}]}],
    "outputs": ["a", "b"]})",
                                      "model.json", "");
  CHECK(graph.tensor(graph.outputs[0]).shape[0].is(8));
  CHECK(graph.tensor(graph.outputs[1]).shape[0].is(16));
}

}  // namespace
}  // namespace fusec
