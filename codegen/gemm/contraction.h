// Emits contractions of any index form, with prologues and epilogues. A block computes a tile of the result. The tiles
// of both operands go through shared memory; tensor cores multiply 16-bit operands, fused multiply-adds all others.
//
//   out[b, m, n] = epilogue(sum over k of a[b, m, k] * c[b, k, n], other operands at [b, m, n])
//
// Several accumulators share the tiles of equal operands, and share a loop if their K is the same. With experts, a
// block loops over the matrices that its rows choose.
//
// m, n, k and b may each be several axes. A convolution is a contraction with an operand that is indexed by sums and
// guarded at the borders (implicit GEMM); a grouped convolution is a batch of them.
//
// A tile is stored the way its vectors come from memory: along K, or across K, in which case ldmatrix transposes. Tile
// lines are padded so that accesses of one request lie in different banks.
//
// If rows are reduced (row GEMM), a block computes some whole rows in shared memory, some columns at a time. Then each
// warp takes a row, reduces it and stores the outputs.
//
//   y[i, :] = layer_norm(r[i, :] + x[i, :] @ w^T)
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/kernel_forms.h"

namespace fusec {

KernelSource emit_contraction(const Kernel& kernel, const Contraction& contraction, const Graph& graph);
KernelSource emit_row_gemm(const RowGemm& form, const Graph& graph);

}  // namespace fusec
