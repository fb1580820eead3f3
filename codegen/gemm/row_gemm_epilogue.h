// What stands behind a product whose rows are reduced by the block that made them: the sums are in shared memory as
// whole rows, and a warp takes a row.
//
//   for (int line = warp; line < 64; line += 8)        a row: its reductions, then its elements
//     for (int k = warp_lane; k < 31; k += 32)         eight neighbours of it, read and stored by 16 bytes
#pragma once

#include <map>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/row_gemm.h"

namespace fusec {

struct RowGemmEpilogue {
  const RowGemm& form;
  const std::map<ExprId, std::string>& sums;  // the rows of each sum at the output's columns
  std::string row0;                           // the block's first
  int rows = 0;                               // of the block
  int row_stride = 0;                         // in elements
  int threads = 0;
  // Columns that a lane has side by side. 8: the first four of each eight are in a row's first half (staged_place).
  int neighbours = 1;
};

// How many neighbours lanes have, of `most`, so that a row takes them the fewest steps.
int row_vector_width(const RowGemm& form, int row_stride, int most);

// `warp` and `warp_lane` are there, and a barrier is behind the last sum.
void emit_row_gemm_epilogue(const RowGemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer,
                            ExprEmitter& emitter);

}  // namespace fusec
