// Ops that are no expression of their index: running sums and products, sorting, scattering. Each is one kernel, the
// same on every run: no atomics, no order left to chance.
#pragma once

#include <vector>

#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

std::vector<KernelSource> special(const Graph& graph, NodeId node, const Target& target);

}  // namespace fusec
