#include "ir/alias_order.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "ir/budget.h"

namespace fusec {
namespace {

// The sorted edges (before, after) that the order must respect.
std::vector<std::pair<NodeId, NodeId>> order_edges(const Graph& graph, const std::vector<Alias>& aliases) {
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    for (const ValueId v : graph.nodes[n].inputs)
      if (v != kNone && graph.value(v).producer != kNone) edges.push_back({graph.value(v).producer, n});
  const Uses uses = uses_of(graph);
  for (const Alias& alias : aliases) {
    count_step();
    const NodeId writer = graph.value(alias.output).producer;
    if (writer == kNone) continue;  // an input or constant is copied at the end
    for (const NodeId reader : uses.of(alias.input))
      if (reader != writer) edges.push_back({reader, writer});
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

}  // namespace

std::optional<std::vector<NodeId>> order_for_aliases(const Graph& graph, const std::vector<Alias>& aliases) {
  const auto edges = order_edges(graph, aliases);
  const auto count = static_cast<NodeId>(graph.nodes.size());
  std::vector<std::uint32_t> waiting(count, 0), begin(count + 1, 0);
  for (const auto& [before, after] : edges) ++waiting[after], ++begin[before + 1];
  for (NodeId n = 0; n < count; ++n) begin[n + 1] += begin[n];

  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId n = 0; n < count; ++n)
    if (waiting[n] == 0) ready.push(n);
  std::vector<NodeId> order;
  order.reserve(count);
  while (!ready.empty()) {
    count_step();
    const NodeId n = ready.top();
    ready.pop();
    order.push_back(n);
    for (std::uint32_t e = begin[n]; e < begin[n + 1]; ++e)
      if (--waiting[edges[e].second] == 0) ready.push(edges[e].second);
  }
  if (order.size() < count) return std::nullopt;
  return order;
}

}  // namespace fusec
