// What a reduction goes over lies in an order in memory, which a permutation before it may have changed: its axes are
// put back into that order, so that they can be merged and read as they lie.
//
//   group norm of x[n, h, w, c] with its channels moved ahead:   sum over c2, h, w   ->   sum over h, w, c2
#pragma once

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// Reductions that answer where something is (argmax) stay: they count along their axes.
Kernel with_reductions_in_memory_order(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
