// Prints what a thread keeps of its row in registers (codegen/reduction/row_registers plans it): arrays with an element
// for each turn of a loop, which the first loop that needs them fills and later ones read.
//
//   float x_row[4];                                          before the first loop, whose turns are counted
//   x_row[turn] = x[row * 1024 + k];                         in it
//   float t_row[4]; ... t_row[turn] = exp(x_row[turn] - m);  in the second loop; the third reads t_row
//
// In shared memory a thread's elements lie as far apart as there are threads, so that neighbours have theirs side by
// side:
//
//   float* const x_row = (float*)dynamic_shared + threadIdx.x;  ... x_row[turn * 256] = x[row * 1024 + k];
//
// Where rows begin anywhere in memory, the element at the row's ends that a thread has is a register of its own, the
// edge.
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
  // Nothing is kept before keep().
  RegisterResidentRow(const RowForm& form, KernelWriter& writer, ExprEmitter& emitter)
      : form_(form), writer_(writer), emitter_(emitter) {}
  // By a block of so many threads.
  void keep(RowRegisters plan, int threads);
  // What is computed of the values that are kept in registers is not kept beside them, but computed once more.
  void recompute_values() { recomputes_values_ = !in_shared_memory(); }
  // What it takes of shared memory, from the beginning on: at most, and of the rows of a launch.
  std::int64_t most_shared_bytes() const { return std::int64_t{4} * threads_ * plan_.shared_words; }
  const IndexExpr& shared_bytes() const { return plan_.shared_bytes; }
  bool in_shared_memory() const { return plan_.shared_words > 0; }
  // Do loops whose turns are counted go on behind these, over what is not kept?
  bool keeps_prefix_only() const { return plan_.keeps_prefix_only; }

  // Of the loop over these axes, where its turns are counted; else 0.
  int iterations_of(const std::vector<std::uint32_t>& axes) const;

  // Loads that the roots need, are kept as they lie in memory, and are the same for all rows; those that no loop has
  // filled yet.
  std::vector<ExprId> row_invariant_loads(const std::vector<ExprId>& roots) const;

  // The arrays that the loop over these axes is the first to fill, and the edges that one over these roots is.
  void declare_arrays(const std::vector<std::uint32_t>& axes);
  void declare_edges(const std::vector<ExprId>& roots);

  // Inside a loop whose turns are counted by the variable `turn`, or at the edge; outside nothing is read or filled.
  void enter(std::string iteration) { iteration_ = std::move(iteration); }
  void enter_edge() { at_edge_ = true; }
  void leave();
  const std::string& iteration() const { return iteration_; }

  // Loads that the roots need and that are not part of a value that is kept; of what is `joined`, itself.
  std::vector<ExprId> loads_of(
      const std::vector<ExprId>& roots, const std::function<bool(ExprId)>& joined = [](ExprId) { return false; }) const;
  // The register in which this turn of the loop has the load, if it is kept as it lies in memory, else ""; `fill` is
  // asked to load it the first time.
  std::string words_of(ExprId load, const std::function<void(const std::string& place)>& fill);
  // In a loop over single elements: loads what is kept, and has it read from there.
  void read_elements(const std::vector<ExprId>& roots);
  // The values of this element that are kept, at `index` of their arrays: computed where this is the first loop that
  // needs them.
  void define_values(const std::vector<ExprId>& roots, const std::string& index);

  // From now on what the loop has filled is read.
  void loop_is_done(const RowLoop& loop);

 private:
  bool is_value(ExprId id) const;
  bool is_overwritten(ExprId id, const std::vector<ExprId>& needed, const std::vector<ExprId>& roots) const;
  std::string words_in_shared_memory(const RowRegisters::Slot& slot, const std::string& place,
                                     const std::function<void(const std::string& place)>& fill);
  std::string place_of(const RowRegisters::Slot& slot, const std::string& index) const;

  const RowForm& form_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  RowRegisters plan_;
  int threads_ = 0;  // of a block
  bool recomputes_values_ = false;
  std::string iteration_;
  bool at_edge_ = false;
};

}  // namespace fusec
