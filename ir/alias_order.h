// An order of execution in which every aliased output may overwrite its input's buffer: all other readers of the input
// come before the node that writes.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// All nodes, each after its operands' producers; among the nodes that are ready, always the one earliest in the graph
// (without aliases: the graph's own order). Nothing where no order serves all of `aliases`.
std::optional<std::vector<NodeId>> order_for_aliases(const Graph& graph, const std::vector<Alias>& aliases);

}  // namespace fusec
