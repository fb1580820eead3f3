// Matrix products of any index form, with whatever stands before and after them: a block of threads makes a tile of the
// result, both factors' tiles go through shared memory, 16-bit factors on tensor cores, others with fused
// multiply-adds.
//
//   out[b, m, n] = epilogue(sum over k of a[b, m, k] * c[b, k, n], other operands at [b, m, n])
//
// m, n, k and b may each be several axes: a convolution is a product whose factor is indexed by sums and guarded at the
// borders (implicit GEMM). A grouped one becomes a batch of products by splitting its channel axis.
#pragma once

#include <optional>

#include "analysis/target.h"
#include "codegen/kernel.h"
#include "codegen/kernel_source.h"

namespace fusec {

// Nothing where the kernel is no product with at least two rows and two columns.
std::optional<KernelSource> contraction(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
