// Emits pipelined GEMMs for sm_80 and later, with operands that are copied as stored (schedule/gemm/gemm_form.h).
// cp.async fills tiles in shared memory, and accumulators are in registers. Tensor cores multiply narrow operands from
// ldmatrix fragments; float32 uses fused multiply-adds with a block of rows and columns per lane.
//
//   for each tile along K      start the copies of a later stage; load fragments one slice of K ahead
//   epilogue                   each warp stages its accumulators in shared memory, for lanes with eight neighbours of a
//                              row, so that the epilogue reads and writes 16 bytes; or, if rows are reduced, whole rows
//                              are staged for warps that take one row each (row_gemm_epilogue)
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/row_gemm.h"

namespace fusec {

KernelSource emit_gemm(const Kernel& kernel, const Contraction& contraction, const GemmForm& form, const Graph& graph);
// `form`: from find_pipelined_row_gemm().
KernelSource emit_pipelined_row_gemm(const RowGemm& rows, const GemmForm& form, const Graph& graph);

}  // namespace fusec
