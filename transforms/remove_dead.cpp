#include "transforms/remove_dead.h"

#include <algorithm>

#include "ir/large_vector.h"

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
  std::vector<NodeId> order;
  order.reserve(graph.nodes.size());
  std::vector<std::uint8_t> visited(graph.nodes.size(), 0);
  // A frame copies the producers of the first operands, so that the walk back need not load the node again.
  constexpr std::uint32_t kNoted = 5;
  constexpr NodeId kAhead = 12;
  struct Frame {
    NodeId node;
    std::uint32_t next_operand, operands;
    NodeId producers[kNoted];
  };
  std::vector<Frame> stack;
  const auto visit = [&](NodeId n) {
    if (n == kNone || visited[n]) return;
    visited[n] = 1;
    // The walk mostly goes to earlier nodes; prefetch one ahead.
    if (n >= kAhead) __builtin_prefetch(&graph.nodes[n - kAhead].inputs);
    const auto& inputs = graph.nodes[n].inputs;
    Frame& frame = stack.emplace_back(Frame{.node = n, .next_operand = 0, .operands = inputs.size(), .producers = {}});
    for (std::uint32_t i = 0; i < std::min(kNoted, inputs.size()); ++i)
      frame.producers[i] = inputs[i] == kNone ? kNone : producers[inputs[i]];
  };
  for (const ValueId output : graph.outputs) {
    visit(producers[output]);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next_operand == frame.operands) {
        order.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      const std::uint32_t i = frame.next_operand++;
      if (i < kNoted) {
        visit(frame.producers[i]);
      } else if (const ValueId v = graph.nodes[frame.node].inputs[i]; v != kNone) {
        visit(producers[v]);
      }
    }
  }
  return order;
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
