// Emits row reductions and fused reductions of their columns as two launches that read every operand once
// (schedule/lowering/cross_row_reduction).
#pragma once

#include <vector>

#include "codegen/expr/kernel_source.h"
#include "schedule/lowering/cross_row_reduction.h"

namespace fusec {

// `original` is the rows' kernel as lowered. Empty if a thread's values do not fit in its registers.
std::vector<KernelSource> cross_row_reduction(const CrossRowReduction& cross_row, const Kernel& original,
                                              const Graph& graph, const Target& target);

}  // namespace fusec
