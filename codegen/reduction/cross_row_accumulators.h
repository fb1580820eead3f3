// What a block's threads keep of the columns of its rows, which it takes one after the other
// (schedule/lowering/cross_row_reduction): each thread has the results of its own columns, warps join theirs in shared
// memory, and a block leaves a line of scratch memory, where the columns' kernel finds it as a chunk's partial results
// (row_partials).
//
//   float dw[8] = {};                                  before the rows
//   dw[turn * 4 + e] += dy * xhat;                     for each element of a row
//   store_words(&partial[blockIdx.x * 768 + ...], ...) behind them
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "schedule/lowering/cross_row_reduction.h"

namespace fusec {

class CrossRowAccumulators {
 public:
  CrossRowAccumulators(const CrossRowReduction& cross_row, KernelWriter& writer);

  // `turns` of `width` elements each are a thread's.
  void declare(int iterations, int width);
  // One more element of each at this place of the thread's.
  void take(const std::string& place, const std::vector<std::string>& values);
  // `part`: this thread's number among those that have a row.
  void store_accumulators(const std::string& part);
  // That warps join their results in: dynamic, since kernels side by side take turns in it.
  std::int64_t shared_bytes() const;

 private:
  void join_warps(const std::string& lane);
  void store_line(const ExprEmitter::Accumulator& a, const std::string& part);

  const CrossRowReduction& cross_row_;
  KernelWriter& writer_;
  std::vector<ExprEmitter::Accumulator> results_;
  int iterations_ = 0, width_ = 1;
};

}  // namespace fusec
