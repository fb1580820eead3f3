// Prints a kernel of rows whose elements take turns in memory, or of strips of them (analysis/interleaved_rows plans
// it).
#pragma once

#include "analysis/interleaved_rows.h"
#include "codegen/kernel_source.h"

namespace fusec {

// Where blocks share the rows (way.chunks), the kernel of this stage leaves the partial results of the reductions that
// need so many others'; the one after the last of them has the outputs. `original` is the kernel as lowered, for its
// name and comment; `wide`: 64-bit indices.
KernelSource emit_interleaved_rows(const Graph& graph, const InterleavedRows& way, bool wide, int stage,
                                   const Kernel& original);

}  // namespace fusec
