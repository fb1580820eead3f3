// Which values of a group are stored by one kernel: those over one iteration space that read one another or the same,
// and smaller ones with an element a row, where that may be rows throughout.
//
//   y = relu(x), z = y * b, both stored        one kernel, y read from a register
//   m = amax(x, -1), s = softmax(x)            one, m with an element a row; whether it is rows is seen when it is
//   built
#pragma once

#include <vector>

#include "analysis/lowering/kernel_unit.h"
#include "ir/graph.h"

namespace fusec {

// The nodes in topological order; in an order that can be run.
std::vector<KernelUnit> partition_into_units(const Graph& graph, const std::vector<NodeId>& nodes,
                                             const Inlining& inlining, const SharingLimits& limits);

}  // namespace fusec
