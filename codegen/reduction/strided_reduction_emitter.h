// Prints a kernel of rows whose elements take turns in memory, or of strips of them
// (schedule/reduction/strided_reduction plans it).
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/reduction/strided_reduction.h"

namespace fusec {

// Where blocks share the rows (way.chunks), the kernel of this stage leaves the partial results of the reductions that
// need so many others'; the one after the last of them has the outputs. `original` is the kernel as lowered, for its
// name and comment; `wide`: 64-bit indices.
KernelSource emit_strided_reduction(const Graph& graph, const StridedReduction& plan, bool wide, int stage,
                                    const Kernel& original);

}  // namespace fusec
