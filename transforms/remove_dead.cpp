#include "transforms/remove_dead.h"

#include <algorithm>

namespace fusec {
namespace {

bool is_as_it_was(const std::vector<NodeId>& order, const Graph& graph) {
  if (order.size() != graph.nodes.size()) return false;
  for (NodeId n = 0; n < order.size(); ++n)
    if (order[n] != n) return false;
  return true;
}

// By value: does a node that stays, or an output, read it?
std::vector<bool> read_values(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<bool> read(graph.value_count(), false);
  for (const ValueId v : graph.outputs) read[v] = true;
  for (const NodeId n : order)
    for (const ValueId v : graph.nodes[n].inputs)
      if (v != kNone) read[v] = true;
  return read;
}

// What becomes of the nodes that go: what becomes of their heirs. Each is asked once, however long the way; a circle of
// heirs leads nowhere.
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

}  // namespace

std::vector<NodeId> needed_nodes(const Graph& graph) {
  std::vector<NodeId> order;
  std::vector<std::uint8_t> visited(graph.nodes.size(), 0);
  struct Frame {
    NodeId node;
    std::uint32_t next_operand;
  };
  std::vector<Frame> stack;
  const auto visit = [&](ValueId v) {
    if (v == kNone || graph.value(v).producer == kNone || visited[graph.value(v).producer]) return;
    visited[graph.value(v).producer] = 1;
    stack.push_back({graph.value(v).producer, 0});
  };
  for (const ValueId output : graph.outputs) {
    visit(output);
    while (!stack.empty()) {
      const NodeId n = stack.back().node;
      const auto& operands = graph.nodes[n].inputs;
      if (stack.back().next_operand < operands.size()) {
        visit(operands[stack.back().next_operand++]);
      } else {
        order.push_back(n);
        stack.pop_back();
      }
    }
  }
  return order;
}

void keep_nodes(CanonicalGraph& canonical, const std::vector<NodeId>& order) {
  Graph& graph = canonical.graph;
  const std::vector<bool> read = read_values(graph, order);
  std::vector<bool> kept(graph.constants.size());
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = !graph.constants[i].data || read[graph.constants[i].value];
  if (is_as_it_was(order, graph) && std::ranges::all_of(kept, [](bool k) { return k; })) return;
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
