// Emits reductions along rows, sequential or nested, and the values computed from them for each column: softmax, norms,
// argmax, sums. A group of threads takes a row: a warp, a block, or one of 32 thread columns of a block (if
// neighbouring rows are contiguous in memory). The order of combination is fixed.
#pragma once

#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/reduction/row_candidates.h"
#include "schedule/target/target.h"

namespace fusec {

// `taken`: the number of the candidate. Empty if segments of rows fit no vectors. Several
// kernels if few long rows need many blocks each: the first kernels store partial results, the next combine them.
std::vector<KernelSource> row_reduction(const RowCandidates& candidates, std::size_t taken, const Kernel& kernel,
                                        const Graph& graph, const Target& target);

}  // namespace fusec
