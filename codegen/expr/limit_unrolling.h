// What unrolled loops would repeat too often for NVRTC (codegen/expr/compile_time): loops behind products and over
// pieces of factors are unrolled in part, or not at all, and functions of much code stand once in the text of the
// kernel, which calls them.
//
//   #pragma unroll @FITS@                                    #pragma unroll 2
//   for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);   ->    for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);
//
//   for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);   ->    y[e] = KERNEL_tanf(x[e])
//
// Elements that take turns go through local memory, and a call costs a few instructions: only kernels that NVRTC would
// take about 400 ms for have any.
#pragma once

#include <string_view>

#include "codegen/expr/kernel_source.h"

namespace fusec {

// Before a loop that may as well be unrolled in part, or not at all: in a kernel's text and body. A number behind it is
// how often it is unrolled at most.
inline constexpr std::string_view kUnrollToFit = "#pragma unroll @FITS@";

void limit_unrolling(KernelSource& source);

}  // namespace fusec
