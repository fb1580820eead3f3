// The source of a pointwise kernel that reads windows, as it was planned (codegen/movement/unaligned_pointwise_plan).
#pragma once

#include "codegen/expr/kernel_source.h"
#include "codegen/movement/unaligned_pointwise_plan.h"
#include "schedule/target/target.h"

namespace fusec {

// `merged` is the kernel without lanes from which the plan was made. The points behind the last whole group of lanes
// are computed one at a time, by this kernel.
KernelSource emit_unaligned_pointwise(const Kernel& merged, const Graph& graph, const Target& target,
                                      UnalignedPlan plan);

}  // namespace fusec
