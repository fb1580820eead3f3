// From a kernel's expressions to its CUDA text, by the schedule that implements their form (schedule/kernel_forms):
//
//   pointwise                      pointwise
//   tensor_core_product, product   gemm where factors lie in memory as they are multiplied (gemm_warpgroup on sm_90a),
//                                  else contraction
//   attention                      attention
//   rows                           row_reduction, or direct where windows are short
//   elements                       direct
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"
#include "schedule/target/target.h"

namespace fusec {

// One kernel, or several that run one after the other (a reduction in two steps). Where that can be done in several
// ways, it is the wanted one, if it is one of them, else the one that is predicted to be best (KernelSource::tuning).
std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const std::string& wanted = "");

// Several kernels, which need nothing of one another, as one whose blocks go through the tiles of all; nothing where
// they are no products, or not alike enough.
std::optional<KernelSource> schedule_together(std::span<const Kernel* const> kernels, const Graph& graph,
                                              const Target& target);

}  // namespace fusec
