// Matrix products whose factors are copied as they lie in memory (schedule/gemm/gemm_form.h), for sm_80 and later: a
// pipeline of tiles in shared memory that cp.async fills, sums in registers. 16-bit factors are multiplied on tensor
// cores, their fragments loaded by ldmatrix; float32 in lanes, each with rows and columns of its own.
//
//   for each tile along the depth      copies of the third tile from here start; fragments are loaded one slice of 16
//                                      ahead of the products
//   at the end                         sums go through shared memory, a warp for itself, to lanes that have eight
//                                      neighbours of a row: what stands behind the product reads and writes 16 bytes;
//                                      or, of a tile as wide as the product whose rows are reduced as wholes, to warps
//                                      that take a row each (row_gemm_epilogue)
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/row_gemm.h"

namespace fusec {

KernelSource emit_gemm(const Kernel& kernel, const Contraction& product, const GemmForm& form, const Graph& graph);
// `form` as find_pipelined_row_gemm gives it.
KernelSource emit_pipelined_row_gemm(const RowGemm& rows, const GemmForm& form, const Graph& graph);

}  // namespace fusec
