#include "schedule/lowering/node_work.h"

#include <cmath>
#include <limits>
#include <span>

#include "analysis/kernel/formula_flops.h"
#include "schedule/lowering/lower_group.h"

namespace fusec {
namespace {

std::int64_t as_count(double flops) {
  constexpr double kMost = 9.2e18;
  return flops >= kMost ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(std::llround(flops));
}

std::int64_t counted(const Graph& graph, NodeId n) {
  const Node& node = graph.nodes[n];
  if (node.op->view || node.op->special == Special::kTuple) return 0;
  if (!node.op->formula) return 0;
  std::vector<ValueId> outputs;
  for (std::uint32_t o = 0; o < node.output_count; ++o) outputs.push_back(node.first_output + o);
  double flops = 0;
  for (const LoweredUnit& unit : lower_group(graph, {n}, outputs))
    if (unit.kind == LoweredUnit::Kind::kKernel) flops += formula_flops(unit.kernel);
  return as_count(flops);
}

}  // namespace

NodeWork::NodeWork(const Graph& graph) : graph_(graph), signatures_(graph) {}

std::int64_t NodeWork::flops(NodeId n) {
  const GroupKey& key = signatures_.of(std::span(&n, 1), {});
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_.emplace(key, counted(graph_, n)).first->second;
}

}  // namespace fusec
