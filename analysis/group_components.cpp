#include "analysis/group_components.h"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>

#include "ir/budget.h"

namespace fusec {

std::vector<std::vector<NodeId>> connected_components(const Graph& graph, std::span<const NodeId> nodes) {
  boost::disjoint_sets_with_storage<> sets(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    count_step();
    for (const ValueId v : graph.nodes[nodes[i]].inputs) {
      if (v == kNone || graph.value(v).kind != Value::Kind::kResult) continue;
      const auto at = std::ranges::lower_bound(nodes, graph.value(v).producer);
      if (at != nodes.end() && *at == graph.value(v).producer)
        sets.union_set(i, static_cast<std::size_t>(at - nodes.begin()));
    }
  }
  std::vector<std::vector<NodeId>> parts;
  std::vector<std::size_t> part_of(nodes.size(), nodes.size());  // by representative
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    count_step();
    std::size_t& part = part_of[sets.find_set(i)];
    if (part == nodes.size()) {
      part = parts.size();
      parts.emplace_back();
    }
    parts[part].push_back(nodes[i]);
  }
  return parts;
}

std::size_t largest_component(const Graph& graph, std::span<const NodeId> nodes) {
  std::size_t most = 0;
  for (const std::vector<NodeId>& part : connected_components(graph, nodes)) most = std::max(most, part.size());
  return most;
}

}  // namespace fusec
