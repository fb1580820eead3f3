// The connected components of a group of nodes. Nodes are connected if one reads the result of another; reading the
// same tensor does not connect them. Each component can run in thread blocks of its own
// (schedule/lowering/horizontal_fusion.h).
//
//   {p0, m0, v0, p1, m1, v1}   m0 -> p0, v0 -> p0, m1 -> p1, v1 -> p1      {p0, m0, v0}, {p1, m1, v1}
//
// The limits on the nodes and arguments of a group apply to each component, since a component does not make the kernels
// of the others longer.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// `nodes` are in topological order. Returns the components ordered by their first nodes, each in topological order.
std::vector<std::vector<NodeId>> connected_components(const Graph& graph, std::span<const NodeId> nodes);

// Returns the number of nodes of the largest component.
std::size_t largest_component(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace fusec
