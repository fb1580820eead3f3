// Emits scalar expressions as CUDA statements. A node that has several uses, or that is a named value of the graph,
// becomes a variable `const float act = ...;`. Other nodes are printed inline. Values that do not depend on a loop's
// axis are emitted before the loop. Reductions of one stage over the same axes share a loop.
//
//   emitter.bind(i, "i");                                  const int i = ...;  (declared by the schedule)
//   emitter.emit({h}) returns "act * from_bf16(up[i])"     const float act = silu...;
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_writer.h"

namespace fusec {

class ExprEmitter {
 public:
  ExprEmitter(const Kernel& kernel, KernelWriter& writer);

  // Binds an axis to a C variable of the index type.
  void bind(std::uint32_t axis, std::string variable);
  bool bound(std::uint32_t axis) const { return axis < axis_text_.size() && !axis_text_[axis].empty(); }

  // Emits the statements that the roots need and returns the text of each root. Every axis that a root uses outside of
  // a reduction must be bound.
  std::vector<std::string> emit(const std::vector<ExprId>& roots);
  std::string emit(ExprId root) { return emit(std::vector<ExprId>{root})[0]; }
  // Emits as variables all nodes below the roots whose axes are bound. Used for loop-invariant values before a loop.
  void emit_independent(const std::vector<ExprId>& roots);
  // The text of an index expression over bound axes and loaded values that are already emitted.
  std::string index(const IndexExpr& e) { return index_text_(e); }
  const IndexText& index_text() const { return index_text_; }

  // Sets the text of a node: a cached value, or one lane of a vector.
  void define(ExprId id, std::string text);

  // `rewind` forgets everything that was bound or emitted since the mark. Used at the end of a block of the emitted
  // text.
  struct Mark {
    std::size_t defined, axes;
  };
  Mark mark() const { return {defined_.size(), bound_.size()}; }
  void rewind(Mark mark);

  // The axes on which a node's value depends, without the axes of reductions inside it.
  bool depends_on(ExprId id, std::uint32_t axis) const;
  std::vector<std::uint32_t> axes_of(ExprId id) const;
  // The preferred variable name for a node, before it is made unique.
  std::string plain_name(ExprId id) const;
  // The position of a load in its tensor, in elements.
  IndexExpr position(ExprId load) const;

  // Overrides the text of a load. A returned "" keeps the default text.
  std::function<std::string(ExprId load)> load_text;
  // Overrides how a group of reductions (one stage, same axes) is computed. Returns true if it defined all of them.
  std::function<bool(const std::vector<ExprId>& reductions)> reduce_hook;

  // --- for schedules that write their own reduction loops
  // An accumulator variable of one reduction.
  struct Accumulator {
    ExprId reduction;
    std::string name;      // of the variable; argmax and argmin accumulate an Extreme
    std::string type;      // "float", "Extreme<float>"
    std::string identity;  // initial value
    std::string combine;   // "Sum{}", "FirstMaximum{}"
    bool extreme = false;
  };
  Accumulator accumulator(ExprId reduction);
  // The same, declared with its initial value.
  Accumulator declared(ExprId reduction);
  // Emits the statements that add one element, at the bound axes, to the accumulators.
  void accumulate(const std::vector<Accumulator>& accumulators);
  // The text of the result after the last element.
  std::string result(const Accumulator& accumulator) const;
  // The position of the current element within the reduction, row-major over the reduction's axes.
  IndexExpr reduced_position(ExprId reduction) const;
  // Subtracted from reduced_position. Nonzero if the axes count vectors from the start of the tensor, not of the row.
  IndexExpr reduced_from = 0;
  // Set when elements are visited in increasing position. Argmax and argmin then ignore an element that ties.
  bool positions_rise = false;

  const Kernel& kernel() const { return kernel_; }
  KernelWriter& writer() { return writer_; }

 private:
  struct Text {
    std::string text;
    bool tight = true;  // binds as tightly as a name; needs no parentheses
  };
  Text make(ExprId id);
  Text make_load(ExprId id);
  std::string arg(const ExprNode& n, std::size_t i) const;    // as an operand, in parentheses where needed
  std::string loose(const ExprNode& n, std::size_t i) const;  // as a function argument, without parentheses
  Text arithmetic(const ExprNode& n) const;
  bool compares_indices(const ExprNode& n) const;
  Text call(std::string_view function, const ExprNode& n) const;
  // The fast-math form, if the node has one and the numerics allow it (emit_fast_math.cpp).
  std::optional<Text> fast_form(const ExprNode& n);
  std::optional<Text> fast_quotient(const ExprNode& n);
  std::optional<Text> fast_softplus(const ExprNode& n);
  std::optional<Text> fast_select(const ExprNode& n);
  std::optional<Text> exact_mean(const ExprNode& n);
  bool is_exp_below_maximum(const ExprNode& n) const;
  bool inexact(ExprId id);
  Text unary(const ExprNode& n);
  Text binary(const ExprNode& n);
  void emit_block(const std::vector<ExprId>& roots);
  void declare(ExprId id, const Text& text);
  void serial_loops(const std::vector<ExprId>& reductions);
  bool available(ExprId id) const { return !texts_[id].text.empty(); }
  bool here(ExprId id) const;  // all axes on which it depends are bound
  std::vector<ExprId> reachable_until(const std::vector<ExprId>& roots) const;
  std::string preferred_name(ExprId id) const;

  const Kernel& kernel_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  IndexText index_text_;
  Dependences dependences_;  // by node: sorted axes
  std::vector<Text> texts_;
  std::vector<ExprId> defined_;
  std::vector<std::string> axis_text_;
  std::vector<std::uint32_t> bound_;
  std::vector<ValueId> names_;
  std::vector<bool> inexact_;  // by node: computed on first use
};

// A C literal such as "1.5f" or "-0.0f"; NaN and infinities are given by their bits.
std::string constant_text(const ExprNode& constant);
std::string zero_text(ScalarType type);

// The statement that stores a value of the compute type at a position of an output: `out[at] = to_bf16(value);`
std::string store_text(KernelWriter& writer, const KernelOutput& output, std::string_view position,
                       std::string_view value);
void store_scalar(KernelWriter& writer, const KernelOutput& output, const CExpr& position, std::string_view value);

}  // namespace fusec
