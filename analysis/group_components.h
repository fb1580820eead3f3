// The parts of a group: its nodes as far as data flows between them. What only reads the same tensors, or nothing in
// common, is a part of its own, and runs in blocks of its own (schedule/lowering/horizontal_fusion.h).
//
//   {p0, m0, v0, p1, m1, v1}   m0 -> p0, v0 -> p0, m1 -> p1, v1 -> p1      {p0, m0, v0}, {p1, m1, v1}
//
// The limits of a group, nodes and arguments, are limits of each part: they keep kernels from growing without end, and
// kernels beside it make none longer.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// `nodes` in topological order, as the nodes of each part are; parts by their first nodes.
std::vector<std::vector<NodeId>> connected_components(const Graph& graph, std::span<const NodeId> nodes);

// Nodes of the largest part.
std::size_t largest_component(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace fusec
