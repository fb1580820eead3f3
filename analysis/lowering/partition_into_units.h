// Decides which values of a group one kernel stores: values over one iteration space that read one another or the same
// tensors, and smaller values with one element per row.
//
//   y = relu(x), z = y * b, both stored        one kernel, which reads y from a register
//   m = amax(x, -1), s = softmax(x)            one kernel, if it is rows throughout once it is built
#pragma once

#include <vector>

#include "analysis/lowering/kernel_unit.h"
#include "ir/graph.h"

namespace fusec {

// `nodes` are in topological order. Returns units in an executable order.
std::vector<KernelUnit> partition_into_units(const Graph& graph, const std::vector<NodeId>& nodes,
                                             const Inlining& inlining, const SharingLimits& limits);

}  // namespace fusec
