// Rows that are reduced, and reductions of their columns, in two launches that read everything once
// (schedule/lowering/cross_row_reduction).
#pragma once

#include <vector>

#include "codegen/expr/kernel_source.h"
#include "schedule/lowering/cross_row_reduction.h"

namespace fusec {

// `original` is the rows' kernel as lowered. None where what a thread needs does not stand in its registers.
std::vector<KernelSource> cross_row_reduction(const CrossRowReduction& cross_row, const Kernel& original,
                                              const Graph& graph, const Target& target);

}  // namespace fusec
