// The source of a pointwise kernel that reads windows, as it was planned (codegen/schedules/windowed_plan).
#pragma once

#include "analysis/target.h"
#include "codegen/kernel_source.h"
#include "codegen/schedules/windowed_plan.h"

namespace fusec {

// `merged`: the kernel without lanes, of which the plan was made; points behind the last whole group go by it.
KernelSource emit_windowed(const Kernel& merged, const Graph& graph, const Target& target, WindowedPlan plan);

}  // namespace fusec
