// Convolutions in groups of few channels that lie last (schedule/convolution/grouped_implicit_gemm.h).
//
//   before the products  places of the windows are copied to shared memory; meanwhile a warp loads its group's weights
//                        to the registers that mma takes them from
//   behind them          sums go through the same memory to threads that have eight channels of a result
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/convolution/grouped_implicit_gemm.h"

namespace fusec {

KernelSource emit_grouped_implicit_gemm(const Kernel& kernel, const GroupedImplicitGemm& windows, const Graph& graph);

}  // namespace fusec
