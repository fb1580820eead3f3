// Emits ops that are no expression of their index: cumulative sums and products, sorting, scattering. The results are
// deterministic: no atomics and no dependence on the order of blocks.
#pragma once

#include <vector>

#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

std::vector<KernelSource> special(const Graph& graph, NodeId node, const Target& target);

}  // namespace fusec
