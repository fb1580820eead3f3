// Emits reductions over strided rows: the elements of several rows interleave in memory (planned by
// schedule/reduction/strided_reduction).
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/reduction/strided_reduction.h"

namespace fusec {

// If blocks share the rows (plan.chunks), kernel `stage` stores the partial results of the reductions that depend on
// `stage` others. The kernel after the last of these computes the outputs. `original` is the kernel as lowered, for its
// name and comment. `wide`: 64-bit indices.
KernelSource emit_strided_reduction(const Graph& graph, const StridedReduction& plan, bool wide, int stage,
                                    const Kernel& original);

}  // namespace fusec
