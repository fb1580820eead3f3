#include "analysis/group_components.h"

#include <algorithm>
#include <numeric>

#include "ir/budget.h"

namespace fusec {

std::vector<std::vector<NodeId>> connected_components(const Graph& graph, std::span<const NodeId> nodes) {
  // Union-find: first[i] is an earlier index of the same component; a root is the component's first node.
  std::vector<std::size_t> first(nodes.size());
  std::iota(first.begin(), first.end(), std::size_t{0});
  const auto find = [&](std::size_t at) {
    while (first[at] != at) at = first[at] = first[first[at]];
    return at;
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    count_step();
    for (const ValueId v : graph.nodes[nodes[i]].inputs) {
      if (v == kNone || graph.value(v).kind != Value::Kind::kResult) continue;
      const auto at = std::ranges::lower_bound(nodes, graph.value(v).producer);
      if (at == nodes.end() || *at != graph.value(v).producer) continue;
      const std::size_t a = find(static_cast<std::size_t>(at - nodes.begin())), b = find(i);
      first[std::max(a, b)] = std::min(a, b);
    }
  }
  std::vector<std::vector<NodeId>> parts;
  std::vector<std::size_t> number(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    count_step();
    const std::size_t leader = find(i);
    if (leader == i) {
      number[i] = parts.size();
      parts.emplace_back();
    }
    parts[number[leader]].push_back(nodes[i]);
  }
  return parts;
}

std::size_t largest_component(const Graph& graph, std::span<const NodeId> nodes) {
  std::size_t most = 0;
  for (const std::vector<NodeId>& part : connected_components(graph, nodes)) most = std::max(most, part.size());
  return most;
}

}  // namespace fusec
