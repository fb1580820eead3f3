// Emits depthwise convolutions and pooling in NHWC (schedule/convolution/nhwc_stencil.h). A thread has vectors of
// channels of several neighbouring results and loads each vector that their windows share once. Weights, which depend
// on channels only, go through shared memory.
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/convolution/nhwc_stencil.h"

namespace fusec {

KernelSource emit_nhwc_stencil(const Kernel& kernel, const NhwcStencil& stencil, const Graph& graph);

}  // namespace fusec
