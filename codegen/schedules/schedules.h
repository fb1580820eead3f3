// From a kernel's expressions to its CUDA text: the first schedule, from the most special to the one that takes
// anything, that applies.
#pragma once

#include <vector>

#include "analysis/target.h"
#include "codegen/emit_options.h"
#include "codegen/kernel.h"
#include "codegen/kernel_source.h"

namespace fusec {

// One kernel, or several that run one after the other (a reduction in two steps).
std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const EmitOptions& options);

}  // namespace fusec
