// Emits GEMMs whose rows are reduced, without a pipeline. A block computes some whole rows in shared memory, a chunk of
// columns at a time. Then each warp takes a row, reduces it and stores the outputs.
//
//   y[i, :] = layer_norm(r[i, :] + x[i, :] @ w^T)
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/row_gemm.h"

namespace fusec {

KernelSource emit_row_gemm(const RowGemm& form, const Graph& graph);

}  // namespace fusec
