#include "transforms/separate_reductions.h"

#include <algorithm>
#include <cstdint>

#include "analysis/group_components.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::int64_t kFewSharedRows = 16;       // most rows of a reduction in which several blocks share a row
constexpr std::int64_t kPointsOfBlock = 1 << 14;  // longest row, in elements, that one block reduces in a short time
constexpr std::size_t kMostOfBlock = 8, kMostAlike = 4;

std::int64_t points_of(const Graph& graph, ValueId v) {
  std::int64_t points = 1;
  for (const Dim& d : graph.tensor(v).shape) points *= std::max<std::int64_t>(1, value_at_hint(d, graph.symbols));
  return points;
}

// The last reduction among the nodes, if none of them is a matrix product and its result and the outputs have at most
// kFewSharedRows elements; else kNone.
NodeId reduction_of_few_rows(const GroupGraph& groups, std::span<const OpPattern> kinds,
                             std::span<const NodeId> nodes) {
  const Graph& graph = groups.graph();
  NodeId last = kNone;
  for (const NodeId n : nodes) {
    if (graph.nodes[n].op->family == "reduction")
      last = n;
    else if (kinds[n] > OpPattern::kInjective)
      return kNone;
  }
  if (last == kNone) return kNone;
  const auto is_of_rows = [&](ValueId v) { return points_of(graph, v) <= kFewSharedRows; };
  return is_of_rows(graph.nodes[last].first_output) && std::ranges::all_of(groups.outputs_of(nodes), is_of_rows)
             ? last
             : kNone;
}

}  // namespace

std::vector<GroupId> separate_reductions(const GroupGraph& groups, std::span<const OpPattern> kinds,
                                         std::span<const GroupId> producers) {
  const Graph& graph = groups.graph();
  std::vector<GroupId> apart;
  std::size_t count = 0;
  bool some_long = false, alike = true;
  std::int64_t before = 0;
  for (const GroupId producer : producers)
    for (const std::vector<NodeId>& part : connected_components(graph, groups.nodes(producer))) {
      const NodeId n = reduction_of_few_rows(groups, kinds, part);
      if (n == kNone) continue;
      const std::int64_t points = points_of(graph, graph.nodes[n].inputs[0]);
      some_long = some_long || points / points_of(graph, graph.nodes[n].first_output) > kPointsOfBlock;
      alike = alike && (count == 0 || points == before);
      before = points;
      ++count;
      if (apart.empty() || apart.back() != producer) apart.push_back(producer);
    }
  const bool few = some_long ? alike && count <= kMostAlike : count <= kMostOfBlock;
  return few || count < 2 ? std::vector<GroupId>{} : apart;
}

}  // namespace fusec
