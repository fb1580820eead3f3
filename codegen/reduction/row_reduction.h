// Reductions along rows, one after the other or one inside the other, and what is made of them for every column of the
// row: softmax, norms, argmax, sums. A team of threads takes a row: a warp, a block, or (where neighbouring rows are
// what lies side by side in memory) one of the 32 columns of threads of a block. The teams combine in a fixed order.
#pragma once

#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/tuning/schedule_choice.h"
#include "schedule/target/target.h"

namespace fusec {

// A kernel of the form `rows`. Empty where single threads do better (small windows). Several kernels where few rows are
// so long that many blocks have to share each: they leave partial results, which the next kernel combines.
std::vector<KernelSource> row_reduction(const Kernel& kernel, const Graph& graph, const Target& target,
                                        ScheduleChoice& choices);

}  // namespace fusec
