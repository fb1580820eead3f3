// Copies the rows that a block takes one after the other to shared memory before their turn (RowLayout::rows_ahead).
// Each thread copies its own vectors with cp.async and alone reads them, so no barrier is needed. The last loop over a
// row, which stores results, reads a vector and starts to copy that of a later row to the same place: copies are under
// way while the threads compute, reduce and store.
//
//   for (row = blockIdx.x; row < 8192; row += 264) {
//     wait_for_groups<1>();                                        // the newest group is the next row's
//     ... x_w = load_words<4>(x_ahead + (stage * 2 + turn) * 256)   // in each loop over the row
//     ... copy_over<16>(x_ahead + (stage * 2 + turn) * 256, x + (row + 2 * 264) * 4096 + ...)     // in the last one
//     commit_copies();
//   }
//
// Operands that are the same for all rows are copied once, if registers do not keep them. Loads of one element per row
// come a row ahead, in a register.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "schedule/reduction/row_form.h"
#include "schedule/reduction/row_layout.h"

namespace fusec {

class RowsAhead {
 public:
  RowsAhead(const RowForm& form, const RowLayout& layout, const std::vector<RowLoop>& loops, KernelWriter& writer,
            ExprEmitter& emitter);
  // Takes the loads of aligned vectors that differ from row to row, or those that are the same for all rows. `kept`:
  // loads that registers keep.
  void take_loads_of_rows() { take(true, {}); }
  void take_shared_loads(const std::map<ExprId, std::size_t>& kept) { take(false, kept); }

  bool empty() const { return slot_of_.empty(); }
  bool has(ExprId load) const { return slot_of_.contains(load); }
  std::int64_t shared_bytes() const { return std::int64_t{4} * layout_.threads * words_; }

  // Names of variables, and expressions: this thread among those of a row, its first row, and the number of rows.
  void begin(const std::string& part, const std::string& first_row, const std::string& rows);
  void open_row(const std::string& row);
  void close_row();
  // After the last row: warps of a block that have finished may use the memory for other things.
  void end();
  // A variable with the load's words in this iteration.
  std::string words_of(ExprId load, const std::string& iteration);
  // In the loop over columns, after its loads: the copies of a later row.
  void copy_later_row(const std::string& iteration, const std::string& vector);

 private:
  struct Slot {
    ValueId tensor;
    DType dtype;
    IndexExpr position;  // of lane 0, over the last loop's vector axis
    bool of_row;
    int words;              // per vector
    int place;              // in words, of a thread
    std::string name = "";  // of the pointer
  };
  void take(bool of_rows, const std::map<ExprId, std::size_t>& kept);
  void take_load(ExprId load, const RowLoop& loop, bool of_row);
  void find_row_scalars();
  std::string place_of(const Slot& slot, const std::string& iteration) const;
  void copy(bool of_rows, const std::string& row, const std::string& iteration, const std::string& vector);
  std::string row_scalar(ExprId load, const std::string& row);
  std::string existing_row(const char* preferred_name, const std::string& row);
  int stages() const { return layout_.rows_ahead; }
  int step() const { return layout_.blocks * layout_.rows; }

  const RowForm& form_;
  const RowLayout& layout_;
  const std::vector<RowLoop> loops_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  ExprEmitter later_;  // for positions in a later row
  std::vector<Slot> slots_;
  std::map<ExprId, std::size_t> slot_of_;
  std::map<ExprId, std::string> row_scalars_;  // by load: the variable of the next row's
  std::int64_t vectors_ = 0;                   // of a row
  int iterations_ = 0, words_ = 0;
  std::string rows_, stage_, later_row_;
};

}  // namespace fusec
