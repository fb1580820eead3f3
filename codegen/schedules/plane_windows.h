// Depthwise convolutions, those in groups of few channels, and pooling, with channels first (analysis/plane_windows.h):
// a block copies what its results' windows are of to shared memory, and each thread adds up several neighbours.
#pragma once

#include "analysis/plane_windows.h"
#include "codegen/kernel_source.h"

namespace fusec {

KernelSource plane_windows(const Kernel& kernel, const PlaneWindows& windows, const Graph& graph);

}  // namespace fusec
