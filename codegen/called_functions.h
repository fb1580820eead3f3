// Functions of much code that unrolled loops would repeat too often: they stand once in the text of the kernel, which
// calls them.
//
//   for (int e = 0; e < 8; ++e) y[e] = tanf(x[e]);     ->     y[e] = KERNEL_tanf(x[e])
//
// NVRTC takes 2 to 13 ms for each of eight copies of a tangent, and nearly nothing for a call. A call costs a few
// instructions: only kernels that NVRTC would take about 400 ms for have any.
#pragma once

#include "codegen/kernel_source.h"

namespace fusec {

void call_large_functions(KernelSource& source);

}  // namespace fusec
