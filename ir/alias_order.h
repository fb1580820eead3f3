// An order of execution in which every aliased output may overwrite its input's buffer: all other readers of the input
// come before the node that writes.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// All nodes, each after its operands' producers. Among the nodes that are ready, the one earliest in the graph comes
// first, so without aliases this is the graph's own order. Nothing if no order satisfies all of `aliases`.
std::optional<std::vector<NodeId>> order_for_aliases(const Graph& graph, const std::vector<Alias>& aliases);

}  // namespace fusec
