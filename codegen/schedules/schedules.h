// From a kernel's expressions to its CUDA text, by the schedule that implements their form (analysis/kernel_forms):
//
//   pointwise                      pointwise
//   tensor_core_product, product   gemm where factors lie in memory as they are multiplied (gemm_warpgroup on sm_90a),
//                                  else contraction
//   attention                      attention
//   rows                           row_reduction, or direct where windows are short
//   elements                       direct
#pragma once

#include <vector>

#include "analysis/kernel.h"
#include "analysis/target.h"
#include "codegen/emit_options.h"
#include "codegen/kernel_source.h"

namespace fusec {

// One kernel, or several that run one after the other (a reduction in two steps).
std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const EmitOptions& options);

}  // namespace fusec
