// Emits reductions along rows, sequential or nested, and the values computed from them for each column: softmax, norms,
// argmax, sums. A group of threads takes a row: a warp, a block, or one of 32 thread columns of a block (if
// neighbouring rows are contiguous in memory). The order of combination is fixed.
#pragma once

#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/tuning/schedule_choice.h"
#include "schedule/kernel_forms.h"
#include "schedule/target/target.h"

namespace fusec {

// For kernels of the form `rows`. Empty if single threads are faster (small windows). Several kernels if few long rows
// need many blocks each: the first kernels store partial results, the next combine them.
std::vector<KernelSource> row_reduction(const FormOfKernel& form_of_kernel, const Kernel& kernel, const Graph& graph,
                                        const Target& target, ScheduleChoice& choices);

}  // namespace fusec
