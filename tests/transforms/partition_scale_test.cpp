// Annotation and partition take the same time for a node of a large graph as for one of a small graph. The bounds are
// wide (bench/partition_scale.py measures): what is quadratic misses them twentyfold, a busy machine does not.
#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "analysis/annotate.h"
#include "support/random_graph.h"
#include "transforms/fuse.h"
#include "transforms/merge_groups.h"

namespace fusec::test {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double least_seconds_a_node(const Graph& graph, int repeats) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < repeats; ++i) {
    const double start = cpu_seconds();
    const FusionPlan plan = fuse(graph, annotate(graph, PatternSource::kTvm), {.strategy = Strategy::kTvm});
    least = std::min(least, cpu_seconds() - start);
    REQUIRE(plan.group_of.size() == graph.nodes.size());
  }
  return least / static_cast<double>(graph.nodes.size());
}

void check_growth(std::uint32_t width, bool join) {
  CAPTURE(width);
  CAPTURE(join);
  const double small = least_seconds_a_node(layered_graph(10000, width, join, 1).graph, 9);
  const double large = least_seconds_a_node(layered_graph(200000, width, join, 1).graph, 4);
  CHECK(large < 2.0 * small);
#ifdef NDEBUG
  CHECK(large < 1 / 0.3e6);  // 0.3 million nodes a second
#endif
}

// x = mul(sub(x, amax(x)), w) and x = matmul(x, w) in turn: what merges, and what does not however often it is asked.
Graph tower_of_norms(std::uint32_t nodes) {
  Graph graph;
  const TensorType square{DType::kFloat32, {4, 4}};
  const ValueId w = graph.add_input("w", square);
  ValueId x = graph.add_input("x", square);
  const auto add = [&](const char* op, std::vector<ValueId> operands, const TensorType& type,
                       Attributes attributes = {}) {
    Node node;
    node.name = "n" + std::to_string(graph.nodes.size());
    node.op = graph.op(op);
    node.inputs = std::move(operands);
    node.attributes = graph.intern(std::move(attributes));
    std::string output = node.name;
    return graph.nodes[graph.add_node(std::move(node), {type}, {std::move(output)})].first_output;
  };
  while (graph.nodes.size() < nodes) {
    const ValueId peak = add("amax", {x}, TensorType{DType::kFloat32, {4, 1}},
                             Attributes({{"dim", std::vector<std::int64_t>{-1}}, {"keepdim", true}}));
    x = add("matmul", {add("mul", {add("sub", {x, peak}, square), w}, square), w}, square);
  }
  graph.outputs = {x};
  return graph;
}

double merging_seconds_a_node(const Graph& graph, int repeats) {
  const std::vector<OpPattern> kinds = annotate(graph, PatternSource::kFormula);
  const FusionPlan apart = fuse(graph, kinds, {});
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < repeats; ++i) {
    FusionPlan plan = apart;
    TrialMemory memory;
    const double start = cpu_seconds();
    merge_forward(graph, kinds, plan, memory);
    merge_siblings(graph, kinds, plan, memory);
    recompute(graph, kinds, plan, memory);
    move_borders(graph, kinds, plan, memory);
    least = std::min(least, cpu_seconds() - start);
    CHECK(plan.groups.size() < apart.groups.size());
  }
  return least / static_cast<double>(graph.nodes.size());
}

}  // namespace

TEST_CASE("merging: the time a node does not grow with the graph") {
  const double small = merging_seconds_a_node(tower_of_norms(25000), 3);
  const double large = merging_seconds_a_node(tower_of_norms(200000), 2);
  CHECK(large < 2.5 * small);
}

TEST_CASE("partition: the time a node does not grow with the graph") {
  check_growth(1, true);    // a chain
  check_growth(10, true);   // branches that meet only at the end
  check_growth(10, false);  // many outputs
}

}  // namespace fusec::test
