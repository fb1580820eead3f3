// Rows that are reduced, and reductions of their columns, in two launches that read everything once
// (analysis/column_folds).
#pragma once

#include <vector>

#include "analysis/column_folds.h"
#include "codegen/kernel_source.h"

namespace fusec {

// `original` is the rows' kernel as lowered. None where what a thread needs does not stand in its registers.
std::vector<KernelSource> column_folds(const ColumnFolds& folds, const Kernel& original, const Graph& graph,
                                       const Target& target);

}  // namespace fusec
