// Rows in shared memory (transposed_row_reduction_emitter, multi_row_block_emitter): some lanes of a warp take a row,
// and reduce by shuffles. Values that several loops over the row need are kept in registers, if these hold all of them:
// loads alone are no faster there than in shared memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/reduction/register_resident_row.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

class SharedRows {
 public:
  // A lane has at most `elements` of a row; a block has `threads`.
  SharedRows(const RowForm& form, const Graph& graph, int lanes, int elements, int threads, ExprEmitter& emitter);

  // Emits the loop over a row, with `element` for each of the thread's elements.
  using OverRow = std::function<void(const RowLoop& loop, const std::function<void()>& element)>;
  // For ExprEmitter::reduce_hook.
  bool reduce(const std::vector<ExprId>& reductions, const OverRow& over_row);

  // Around the loop over a row with iteration variable `iteration`. Values are kept if its trip count is.
  bool enter(const RowLoop& loop, const std::string& iteration);
  void leave(const RowLoop& loop);

  RegisterResidentRow& registers() { return registers_; }
  int register_words() const { return register_words_; }

 private:
  const RowForm& form_;
  const int lanes_;
  ExprEmitter& emitter_;
  RegisterResidentRow registers_;
  int register_words_ = 0;
};

}  // namespace fusec
