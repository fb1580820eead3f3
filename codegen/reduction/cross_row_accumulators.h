// Accumulators of a fused cross-row reduction (schedule/lowering/cross_row_reduction). A block takes its rows one after
// the other. Each thread accumulates its own columns, warps combine theirs in shared memory, and each block stores one
// line of partial results in scratch memory. The columns' kernel reads these lines as partial results of chunks
// (row_partials).
//
//   float dw[8] = {};                                  before the rows
//   dw[turn * 4 + e] += dy * xhat;                     for each element of a row
//   store_words(&partial[blockIdx.x * 768 + ...], ...) after the rows
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

  // A thread has `iterations` vectors of `width` elements.
  void declare(int iterations, int width);
  // Adds one element to each accumulator, at a place in the thread's arrays.
  void take(const std::string& place, const std::vector<std::string>& values);
  // `part`: this thread's number among those of a row.
  void store_accumulators(const std::string& part);
  // Shared memory in which warps combine their results, in bytes. It is dynamic, so that the parts of a horizontal
  // fusion can share it.
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
