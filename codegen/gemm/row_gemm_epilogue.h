// The epilogue of GEMMs whose rows are reduced: the accumulators are whole rows in shared memory, and a warp takes a
// row.
//
//   for (int line = warp; line < 64; line += 8)        a row: its reductions, then its elements
//     for (int k = warp_lane; k < 31; k += 32)         eight neighbours, read and stored with 16 bytes
#pragma once

#include <map>
#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/gemm/row_gemm.h"

namespace fusec {

struct RowGemmEpilogue {
  const RowGemm& form;
  const std::map<ExprId, std::string>& sums;  // pointer to the rows of each accumulator
  std::string row0;                           // first row of the block
  int rows = 0;                               // rows of the block
  int row_stride = 0;                         // in elements
  int threads = 0;
  // Neighbouring columns per lane. With 8, the first four of each eight are in the first half of a row (staged_place).
  int neighbours = 1;
};

// The number of neighbours per lane, at most `most`, for the fewest steps per row.
int row_vector_width(const RowGemm& form, int row_stride, int most);

// `warp` and `warp_lane` must be declared, and a barrier must follow the last store of accumulators.
void emit_row_gemm_epilogue(const RowGemmEpilogue& epilogue, const Graph& graph, KernelWriter& writer,
                            ExprEmitter& emitter);

}  // namespace fusec
