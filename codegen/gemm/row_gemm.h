// Products whose rows are reduced as wholes: a block makes some rows of the product, a chunk of columns at a time, in
// shared memory; then a warp takes a row, reduces it, and stores what is wanted of it.
//
//   y[i, :] = layer_norm(r[i, :] + x[i, :] @ w^T)
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/row_gemm.h"

namespace fusec {

KernelSource emit_row_gemm(const RowGemm& form, const Graph& graph);

}  // namespace fusec
