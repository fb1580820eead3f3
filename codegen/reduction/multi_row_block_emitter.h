// Emits a kernel of short rows staged in shared memory (planned by schedule/reduction/multi_row_block).
#pragma once

#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "schedule/reduction/multi_row_block.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// `original` is the kernel as lowered, for its name and comment. `wide`: 64-bit indices.
KernelSource emit_multi_row_block(const RowForm& form, const Graph& graph, const MultiRowBlock& plan, bool wide,
                                  const Kernel& original);

}  // namespace fusec
