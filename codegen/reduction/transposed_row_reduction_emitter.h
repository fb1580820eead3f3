// Emits row reductions for rows that are strided in some operands and contiguous in others (planned by
// schedule/reduction/transposed_row_reduction).
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/reduction/transposed_row_reduction.h"

namespace fusec {

// `original` is the kernel as lowered, for its name and comment. `wide`: 64-bit indices.
KernelSource emit_transposed_row_reduction(const Graph& graph, const TransposedRowReduction& plan, bool wide,
                                           const Kernel& original);

}  // namespace fusec
