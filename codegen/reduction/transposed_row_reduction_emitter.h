// Prints a kernel of rows that lie across memory in some tensors and along it in others
// (schedule/reduction/transposed_row_reduction plans it).
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/reduction/transposed_row_reduction.h"

namespace fusec {

// `original` is the kernel as lowered, for its name and comment; `wide`: 64-bit indices.
KernelSource emit_transposed_row_reduction(const Graph& graph, const TransposedRowReduction& plan, bool wide,
                                           const Kernel& original);

}  // namespace fusec
