// What no output needs goes: nodes, and constants whose data nobody reads. The nodes that stay are taken by depth from
// the outputs, operands first: the order of the result follows from the wiring alone, not from where a node stands in
// the file, and with it every later choice between equals.
#pragma once

#include <vector>

#include "transforms/canonical_graph.h"

namespace fusec {

void remove_dead(CanonicalGraph& canonical);

// Its two halves: the nodes that stay, in their new order, and the graph with these alone.
std::vector<NodeId> needed_nodes(const Graph& graph);
void keep_nodes(CanonicalGraph& canonical, const std::vector<NodeId>& order);

}  // namespace fusec
