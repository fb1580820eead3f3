// Emits the CUDA text of a kernel as it is planned (schedule/plan/kernel_plan.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/form_memory.h"
#include "schedule/target/target.h"

namespace fusec {

// One kernel, or several that run one after the other (a two-step reduction). Among several candidates it takes
// `wanted` if that is one of them, else the one predicted to be fastest (KernelSource::tuning).
std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target, FormMemory& forms,
                                   const std::string& wanted = "");

// One kernel with blocks that iterate over the tiles of several independent GEMMs. Nothing if the kernels are not GEMMs
// or differ too much.
std::optional<KernelSource> schedule_together(std::span<const Kernel* const> kernels, const Graph& graph,
                                              const Target& target, FormMemory& forms);

}  // namespace fusec
