// Depthwise convolutions, those in groups of few channels, and pooling, with channels first
// (schedule/convolution/nchw_stencil.h): a block copies what its results' windows are of to shared memory, and each
// thread adds up several neighbours.
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/convolution/nchw_stencil.h"

namespace fusec {

KernelSource emit_nchw_stencil(const Kernel& kernel, const NchwStencil& windows, const Graph& graph);

}  // namespace fusec
