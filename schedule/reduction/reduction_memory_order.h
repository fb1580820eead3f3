// Restores the memory order of reduction axes that a permutation before the reduction has changed. The axes can then be
// merged and read contiguously.
//
//   group norm of x[n, h, w, c], channels permuted to the front:   sum over c2, h, w   ->   sum over h, w, c2
#pragma once

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// Argmax and argmin keep their order, because they count along their axes.
Kernel with_reductions_in_memory_order(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
