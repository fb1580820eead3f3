#include "ir/alias_order.h"

#include "ir/budget.h"
#include "ir/digraph.h"

namespace fusec {

std::optional<std::vector<NodeId>> order_for_aliases(const Graph& graph, const std::vector<Alias>& aliases) {
  const Uses uses = uses_of(graph);
  std::vector<NodeId> order = topological_order(digraph_of(graph.nodes.size(), [&](auto before) {
    for (NodeId n = 0; n < graph.nodes.size(); ++n)
      for (const ValueId v : graph.nodes[n].inputs)
        if (v != kNone && graph.value(v).producer != kNone) before(graph.value(v).producer, n);
    for (const Alias& alias : aliases) {
      count_step();
      const NodeId writer = graph.value(alias.output).producer;
      if (writer == kNone) continue;  // an input or constant is copied at the end
      for (const NodeId reader : uses.of(alias.input))
        if (reader != writer) before(reader, writer);
    }
  }));
  if (order.size() < graph.nodes.size()) return std::nullopt;
  return order;
}

}  // namespace fusec
