// Depthwise convolutions and pooling with channels last (schedule/convolution/nhwc_stencil.h): a thread has vectors of
// channels of several neighbouring results, and loads each vector that their windows have in common once. What belongs
// to channels alone, weights, goes through shared memory.
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/convolution/nhwc_stencil.h"

namespace fusec {

KernelSource emit_nhwc_stencil(const Kernel& kernel, const NhwcStencil& windows, const Graph& graph);

}  // namespace fusec
