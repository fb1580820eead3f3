// Maps threads to rows, and emits the reduction among the threads of a row (schedule/reduction/row_layout's
// ReductionGroup):
//
//   kWarp     lane = threadIdx.x % parts;  row = blockIdx.x * rows + threadIdx.x / parts;  warp_reduce
//   kBlock    lane = threadIdx.x;  row = blockIdx.x;  block_reduce; with several blocks per row, cluster_reduce or
//             cohort_reduce
//   kColumn   part = threadIdx.x / 32;  row = blockIdx.x * 32 + threadIdx.x % 32;  column_reduce
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "schedule/reduction/row_form.h"
#include "schedule/reduction/row_layout.h"

namespace fusec {

class RowThreads {
 public:
  RowThreads(const RowForm& form, const RowLayout& layout, KernelWriter& writer, ExprEmitter& emitter)
      : form_(form), layout_(layout), writer_(writer), emitter_(emitter) {}

  // Declares the thread's row and lane, and binds the form's axes of rows. `chunked`: a block takes one chunk of its
  // row.
  void open(const IndexExpr& rows, bool chunked);
  // The counterpart of `open` for blocks or warps that take rows one after the other: first declares the lane, then
  // opens the loop over rows.
  void declare_lane();
  void open_sequential_rows(const IndexExpr& rows);
  std::string first_sequential_row() const;

  // Blocks per row. For columns with a height known only at launch, an expression over the symbols.
  IndexExpr chunks() const;
  const std::string& chunk_count() const { return chunk_count_; }  // text of the number of blocks per row

  // Emits the reduction of each thread's accumulators among the threads of the row. Where threads meet at barriers, all
  // of them are one reduction:
  //
  //   const auto results = block_reduce<256, 0>(pair(sum, sum_2), pairwise(Sum{}, Sum{}));
  //   sum = results.first;
  //   sum_2 = results.second;
  void reduce(const std::vector<ExprEmitter::Accumulator>& accumulators);
  // How many of the emitted reductions use shared memory.
  int block_reductions() const { return block_reductions_; }

  const std::string& part() const { return part_; }      // this thread's index within the row
  const std::string& row() const { return row_; }        // "0" if there is only one
  const std::string& chunk() const { return chunk_; }    // this block's index within the row; "" if there is one block
  const std::string& active() const { return active_; }  // true if the row exists; "" if all do

 private:
  void open_warp(const std::string& block, const IndexExpr& rows);
  void open_odd_lanes(const std::string& block, const IndexExpr& rows);
  void open_block(const std::string& block);
  void bind_valid_row(const std::string& text, const IndexExpr& rows, const std::string& condition = "");
  std::string reduced(const ExprEmitter::Accumulator& a, std::size_t count = 1);
  std::string cohort_reduce(const ExprEmitter::Accumulator& a, std::size_t count);
  void reduce_as_one(std::span<const ExprEmitter::Accumulator> accumulators);

  const RowForm& form_;
  const RowLayout& layout_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string part_, row_ = "0", chunk_, active_;
  std::string chunk_count_ = "1";
  std::string arrived_;  // co-resident blocks: their counters
  int block_reductions_ = 0;
};

}  // namespace fusec
