// Emits depthwise convolutions, grouped convolutions with few channels per group, and pooling, in NCHW
// (schedule/convolution/nchw_stencil.h). A block copies the input of its windows to shared memory, and each thread
// computes several neighbouring results.
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/convolution/nchw_stencil.h"

namespace fusec {

KernelSource emit_nchw_stencil(const Kernel& kernel, const NchwStencil& stencil, const Graph& graph);

}  // namespace fusec
