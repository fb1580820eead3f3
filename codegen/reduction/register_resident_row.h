// Emits the part of a row that a thread keeps in registers (planned by codegen/reduction/row_registers). Each value has
// an array with one element per loop iteration. The first loop that needs it fills the array; later loops read it.
//
//   float x_row[4];                                          before the first loop with a known trip count
//   x_row[turn] = x[row * 1024 + k];                         in it
//   float t_row[4]; ... t_row[turn] = exp(x_row[turn] - m);  in the second loop; the third reads t_row
//
// In shared memory, consecutive elements of a thread are `threads` apart, so that neighbouring threads access
// neighbouring words:
//
//   float* const x_row = (float*)dynamic_shared + threadIdx.x;  ... x_row[turn * 256] = x[row * 1024 + k];
//
// If rows are unaligned, a thread may also have one element at the ends of the row (the edge), kept in its own
// register.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/expr/kernel_writer.h"
#include "codegen/reduction/row_registers.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

class RegisterResidentRow {
 public:
  // Keeps nothing before keep() is called.
  RegisterResidentRow(const RowForm& form, KernelWriter& writer, ExprEmitter& emitter)
      : form_(form), writer_(writer), emitter_(emitter) {}
  // `threads`: per block.
  void keep(RowRegisters plan, int threads);
  // Bytes of shared memory, from offset 0: an upper bound, and the amount for the rows of a launch.
  std::int64_t most_shared_bytes() const { return std::int64_t{4} * threads_ * plan_.shared_words; }
  const IndexExpr& shared_bytes() const { return plan_.shared_bytes; }
  bool in_shared_memory() const { return plan_.shared_words > 0; }
  // True if only the first iterations of a row are kept, and loops read the rest again.
  bool keeps_prefix_only() const { return plan_.keeps_prefix_only; }

  // Trip count of the loop over these axes, if it is known; else 0.
  int iterations_of(const std::vector<std::uint32_t>& axes) const;

  // Loads below the roots that are kept as loaded, are the same for all rows, and are not filled so far.
  std::vector<ExprId> row_invariant_loads(const std::vector<ExprId>& roots) const;

  // Declares the arrays that the loop over these axes fills first, and the edge registers of these roots.
  void declare_arrays(const std::vector<std::uint32_t>& axes);
  void declare_edges(const std::vector<ExprId>& roots);

  // Marks the code inside a loop with iteration variable `iteration`, or at the edge. Outside, nothing is read or
  // filled.
  void enter(std::string iteration) { iteration_ = std::move(iteration); }
  void enter_edge() { at_edge_ = true; }
  void leave();
  const std::string& iteration() const { return iteration_; }

  // Loads below the roots that are not part of a kept value. A `joined` expression (a concat) counts as one load.
  std::vector<ExprId> loads_of(
      const std::vector<ExprId>& roots, const std::function<bool(ExprId)>& joined = [](ExprId) { return false; }) const;
  // The register with the load's words for this iteration, if the load is kept as loaded; else "". The first time,
  // `fill` emits the load.
  std::string words_of(ExprId load, const std::function<void(const std::string& place)>& fill);
  // In a loop over scalar elements: loads the kept elements, and defines them from their arrays.
  void read_elements(const std::vector<ExprId>& roots);
  // Defines the kept values of this element from `index` of their arrays. The first loop that needs them computes them.
  void define_values(const std::vector<ExprId>& roots, const std::string& index);

  // Marks the loop's arrays as filled: later loops read them.
  void loop_is_done(const RowLoop& loop);

 private:
  bool is_value(ExprId id) const;
  std::string words_in_shared_memory(const RowRegisters::Slot& slot, const std::string& place,
                                     const std::function<void(const std::string& place)>& fill);
  std::string place_of(const RowRegisters::Slot& slot, const std::string& index) const;

  const RowForm& form_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  RowRegisters plan_;
  int threads_ = 0;  // per block
  std::string iteration_;
  bool at_edge_ = false;
};

}  // namespace fusec
