// What a block's threads keep of the columns of its rows, which it takes one after the other (analysis/column_folds):
// each thread has the results of its own columns, warps join theirs in shared memory, and a block leaves a line of
// scratch memory, where the columns' kernel finds it as a chunk's partial results (row_partials).
//
//   float dw[8] = {};                                  before the rows
//   dw[turn * 4 + e] += dy * xhat;                     for each element of a row
//   store_words(&partial[blockIdx.x * 768 + ...], ...) behind them
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/column_folds.h"
#include "codegen/emit_expr.h"
#include "codegen/kernel_writer.h"

namespace fusec {

class FoldedColumns {
 public:
  FoldedColumns(const ColumnFolds& folds, KernelWriter& writer);

  // `turns` of `width` elements each are a thread's.
  void declare(int turns, int width);
  // One more element of each at this place of the thread's.
  void take(const std::string& place, const std::vector<std::string>& values);
  // `part`: this thread's number among those that have a row.
  void leave(const std::string& part);
  // That warps join their results in: dynamic, since kernels side by side take turns in it.
  std::int64_t shared_bytes() const;

 private:
  void join_warps(const std::string& lane);
  void leave_line(const ExprEmitter::Accumulator& a, const std::string& part);

  const ColumnFolds& folds_;
  KernelWriter& writer_;
  std::vector<ExprEmitter::Accumulator> results_;
  int turns_ = 0, width_ = 1;
};

}  // namespace fusec
