// Matrix products of any index form, with whatever stands before and after them: a block of threads makes a tile of the
// result, both factors' tiles go through shared memory, 16-bit factors on tensor cores, others with fused
// multiply-adds.
//
//   out[b, m, n] = epilogue(sum over k of a[b, m, k] * c[b, k, n], other operands at [b, m, n])
//
// Several sums over one space share the tiles of equal factors, and a loop where their depths are equal.
//
// Where each row chooses its matrix (experts), a block goes over the matrices that its rows have chosen.
//
// m, n, k and b may each be several axes: a convolution is a product whose factor is indexed by sums and guarded at the
// borders (implicit GEMM), a grouped one a batch of products.
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/kernel_forms.h"

namespace fusec {

KernelSource emit_contraction(const Kernel& kernel, const Contraction& product, const Graph& graph);

}  // namespace fusec
