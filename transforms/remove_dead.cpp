#include "transforms/remove_dead.h"

#include <algorithm>

#include "ir/digraph.h"

namespace fusec {
namespace {

bool is_as_it_was(const std::vector<NodeId>& order, const Graph& graph) {
  if (order.size() != graph.nodes.size()) return false;
  for (NodeId n = 0; n < order.size(); ++n)
    if (order[n] != n) return false;
  return true;
}

// By value: whether a remaining node or a graph output reads it.
std::vector<bool> read_values(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<bool> read(graph.value_count(), false);
  for (const ValueId v : graph.outputs) read[v] = true;
  for (const NodeId n : order)
    for (const ValueId v : graph.nodes[n].inputs)
      if (v != kNone) read[v] = true;
  return read;
}

// Gives each removed node the fate of its heir, following chains of heirs. Each node is visited once; a cycle of heirs
// stays dropped.
void inherit(const CanonicalGraph& canonical, std::vector<NodeId>& fates) {
  if (canonical.heirs.empty()) return;
  std::vector<std::uint8_t> asked(fates.size(), 0);
  std::vector<NodeId> way;
  for (NodeId dead = 0; dead < fates.size(); ++dead) {
    way.clear();
    NodeId n = dead;
    while (fates[n] == kDropped && !asked[n]) {
      asked[n] = 1;
      way.push_back(n);
      if (canonical.heirs[n] != kNone) n = canonical.heirs[n];
    }
    for (const NodeId on_the_way : way) fates[on_the_way] = fates[n];
  }
}

// The producer of each value in a dense array. Reading graph.value(v).producer would miss the cache for every value of
// a large graph.
LargeVector<NodeId> producers_of_values(const Graph& graph) {
  LargeVector<NodeId> producers(graph.value_count(), kNone);
  for (NodeId n = 0; n < graph.nodes.size(); ++n)
    for (std::uint32_t o = 0; o < graph.nodes[n].output_count; ++o) producers[graph.nodes[n].first_output + o] = n;
  return producers;
}

}  // namespace

std::vector<NodeId> needed_nodes(const Graph& graph) {
  const LargeVector<NodeId> producers = producers_of_values(graph);
  Digraph needs;
  needs.first.reserve(graph.nodes.size() + 1);
  needs.targets.reserve(2 * graph.nodes.size());
  needs.first.push_back(0);
  for (const Node& node : graph.nodes) {
    for (const ValueId v : node.inputs)
      if (v != kNone && producers[v] != kNone) needs.targets.push_back(producers[v]);
    needs.first.push_back(static_cast<std::uint32_t>(needs.targets.size()));
  }
  std::vector<NodeId> roots;
  for (const ValueId output : graph.outputs)
    if (producers[output] != kNone) roots.push_back(producers[output]);
  return post_order(needs, roots);
}

void keep_nodes(CanonicalGraph& canonical, const std::vector<NodeId>& order) {
  Graph& graph = canonical.graph;
  std::vector<bool> kept(graph.constants.size(), true);
  bool all = true;
  if (std::ranges::any_of(graph.constants, [](const Constant& constant) { return constant.data != nullptr; })) {
    const std::vector<bool> read = read_values(graph, order);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      kept[i] = !graph.constants[i].data || read[graph.constants[i].value];
      all = all && kept[i];
    }
  }
  if (all && is_as_it_was(order, graph)) return;
  std::vector<NodeId> fates(graph.nodes.size(), kDropped);
  for (NodeId n = 0; n < order.size(); ++n) fates[order[n]] = n;
  inherit(canonical, fates);
  graph.rearrange(order, kept);
  note_fates(canonical, fates);
}

void remove_dead(CanonicalGraph& canonical) {
  keep_nodes(canonical, needed_nodes(canonical.graph));
}

}  // namespace fusec
