// Limits unrolling and inlining in a kernel that NVRTC would compile too slowly (codegen/expr/compile_time). Epilogue
// loops and loops over pieces of operands are unrolled in part or not at all. Large functions are moved into one
// function that the kernel calls.
//
//   #pragma unroll @FITS@                                    #pragma unroll 2
//   for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);   ->    for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);
//
//   for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);   ->    y[e] = KERNEL_tanf(x[e])
//
// Arrays indexed in a loop that is not unrolled go through local memory, and a call costs a few instructions. Therefore
// only kernels beyond the time limit change.
#pragma once

#include <string_view>

#include "codegen/expr/kernel_source.h"

namespace fusec {

// Placeholder in a kernel's text and body before a loop that may be unrolled less. A number behind it is the largest
// unroll factor.
inline constexpr std::string_view kUnrollToFit = "#pragma unroll @FITS@";

// Sets `compile_ms`. Does nothing if it is set.
void limit_unrolling(KernelSource& source);

}  // namespace fusec
