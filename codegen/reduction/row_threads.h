// Which row a thread works at, and how the threads of one row reduce together (schedule/reduction/row_layout's
// ReductionGroup):
//
//   kWarp     lane = threadIdx.x % parts;  row = blockIdx.x * rows + threadIdx.x / parts;  warp_reduce
//   kBlock    lane = threadIdx.x;  row = blockIdx.x;  block_reduce, or with a rank of several blocks that share the
//   row,
//             cluster_reduce and cohort_reduce
//   kColumn   part = threadIdx.x / 32;  row = blockIdx.x * 32 + threadIdx.x % 32;  column_reduce
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "schedule/reduction/row_form.h"
#include "schedule/reduction/row_layout.h"

namespace fusec {

class RowThreads {
 public:
  RowThreads(const RowForm& form, const RowLayout& layout, KernelWriter& writer, ExprEmitter& emitter)
      : form_(form), layout_(layout), writer_(writer), emitter_(emitter) {}

  // Declares them and binds the form's axes of rows. `chunked`: a block takes one chunk of its row.
  void open(const IndexExpr& rows, bool chunked);
  // As `open` where blocks, or their warps, take rows one after the other: first the lane, then in a loop the row.
  void declare_lane();
  void open_sequential_rows(const IndexExpr& rows);

  // Blocks that share a row: of columns of which only a launch knows how tall they are, as many as it asks for.
  IndexExpr chunks() const;
  const std::string& chunk_count() const { return chunk_count_; }  // their number, as text

  // What all of the row's threads have of it; text of what each of them has of this reduction is `a`.
  std::string reduce(const ExprEmitter::Accumulator& a);
  // Of those that went through shared memory, how many there are.
  int block_reductions() const { return block_reductions_; }

  const std::string& part() const { return part_; }      // which of the row's threads this is
  const std::string& row() const { return row_; }        // "0" where there is one
  const std::string& chunk() const { return chunk_; }    // which block of its row's this is; "" of one
  const std::string& active() const { return active_; }  // is the row a real one? "" where all are

 private:
  void open_warp(const std::string& block, const IndexExpr& rows);
  void open_odd_lanes(const std::string& block, const IndexExpr& rows);
  void open_block(const std::string& block);
  void bind_valid_row(const std::string& text, const IndexExpr& rows, const std::string& condition = "");
  std::string cohort_reduce(const ExprEmitter::Accumulator& a);

  const RowForm& form_;
  const RowLayout& layout_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string part_, row_ = "0", chunk_, active_;
  std::string chunk_count_ = "1";
  std::string arrived_;  // cohorts: their counters
  int block_reductions_ = 0;
};

}  // namespace fusec
