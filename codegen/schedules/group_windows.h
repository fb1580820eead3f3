// Convolutions in groups of few channels that lie last (analysis/group_windows.h).
//
//   before the products  places of the windows are copied to shared memory; meanwhile a warp loads its group's weights
//                        to the registers that mma takes them from
//   behind them          sums go through the same memory to threads that have eight channels of a result
#pragma once

#include "analysis/group_windows.h"
#include "codegen/kernel_source.h"

namespace fusec {

KernelSource group_windows(const Kernel& kernel, const GroupWindows& windows, const Graph& graph);

}  // namespace fusec
