// Emits grouped convolutions with few channels per group, in NHWC (schedule/convolution/grouped_implicit_gemm.h).
//
//   before the MMA loop  the input positions of the windows are copied to shared memory; meanwhile each warp loads its
//                        group's weights into mma fragments
//   epilogue             accumulators go through the same memory to threads that own eight channels of a result
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/convolution/grouped_implicit_gemm.h"

namespace fusec {

KernelSource emit_grouped_implicit_gemm(const Kernel& kernel, const GroupedImplicitGemm& form, const Graph& graph);

}  // namespace fusec
