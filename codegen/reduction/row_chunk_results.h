// Stores and combines the partial results of rows that independent blocks share (RowLayout::chunks). Each block takes
// one chunk of its row and stores a result of each reduction in scratch memory (row_partials); the kernel of the next
// stage combines those of all chunks.
//
//   if (lane == 0) partial[row * 4 + chunk] = sum;                      the block of a chunk
//   for (int i = lane; i < 4; i += 32) sum += partial[row * 4 + i];     the next kernel
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/reduction/row_threads.h"
#include "schedule/reduction/row_form.h"
#include "schedule/reduction/row_layout.h"

namespace fusec {

class RowChunkResults {
 public:
  RowChunkResults(const RowForm& form, const RowLayout& layout, KernelWriter& writer, ExprEmitter& emitter,
                  RowThreads& threads)
      : form_(form), layout_(layout), writer_(writer), emitter_(emitter), threads_(threads) {}

  // Stores the results of this block's chunk. `count`: the number of its elements, "" if that is not stored.
  void store(const std::vector<ExprEmitter::Accumulator>& accumulators, const std::string& count = "");
  // Combines the results of all chunks of the row, and defines the reductions.
  void combine(const std::vector<ExprId>& reductions);

  // The scratch memory for a result per row and chunk, and for the element count per row and chunk.
  std::string memory_of(const ExprEmitter::Accumulator& a);
  std::string memory_of_counts();
  // The index of a chunk's result. Neighbouring threads read neighbouring chunks, or rows.
  std::string place(const std::string& chunk) const;
  // Opens a loop in which the threads of a row share its chunks: `i` is the index of a chunk.
  void open_chunks(const std::string& i);

 private:
  const RowForm& form_;
  const RowLayout& layout_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  RowThreads& threads_;
};

}  // namespace fusec
