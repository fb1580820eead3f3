// Removes nodes that no output needs, and constants with data that no node reads. The remaining nodes are put into the
// post-order of a depth-first walk from the outputs. So the order, and every later tie-break, depends on the graph
// alone and not on the order of nodes in the file.
#pragma once

#include <vector>

#include "transforms/canonical_graph.h"

namespace fusec {

void remove_dead(CanonicalGraph& canonical);

// The two steps of remove_dead. needed_nodes: the remaining nodes in their new order. keep_nodes: reduces the graph to
// these nodes.
std::vector<NodeId> needed_nodes(const Graph& graph);
void keep_nodes(CanonicalGraph& canonical, const std::vector<NodeId>& order);

}  // namespace fusec
