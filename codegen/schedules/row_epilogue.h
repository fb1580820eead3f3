// What stands behind a product whose rows are reduced by the block that made them: the sums are in shared memory as
// whole rows, and a warp takes a row.
//
//   for (int line = warp; line < 64; line += 8)        a row: its reductions, then its elements
#pragma once

#include <map>
#include <string>

#include "analysis/row_product.h"
#include "codegen/emit_expr.h"

namespace fusec {

struct RowEpilogue {
  const RowProduct& form;
  const std::map<ExprId, std::string>& sums;  // the rows of each sum at the output's columns
  std::string row0;                           // the block's first
  int rows = 0;                               // of the block
  int row_stride = 0;                         // in elements
  int threads = 0;
};

// `warp` and `warp_lane` are there, and a barrier is behind the last sum.
void emit_row_epilogue(const RowEpilogue& epilogue, KernelWriter& writer, ExprEmitter& emitter);

}  // namespace fusec
