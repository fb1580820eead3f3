// Scalar expressions as CUDA statements. A node that is used more than once, or that is a named value of the graph,
// becomes `const float act = ...;`, the others stand inline; what does not depend on a loop's axis stands before the
// loop; reductions of one stage over the same axes share a loop.
//
//   emitter.bind(i, "i");                                  const int i = ...;  (the schedule's)
//   emitter.emit({h}) gives "act * from_bf16(up[i])"       const float act = silu...;
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

  // From now on the axis is this C variable of the index type.
  void bind(std::uint32_t axis, std::string variable);
  bool bound(std::uint32_t axis) const { return axis < axis_text_.size() && !axis_text_[axis].empty(); }

  // Emits what the roots need, and gives each root's text. Every axis that a root mentions outside of a reduction must
  // be bound.
  std::vector<std::string> emit(const std::vector<ExprId>& roots);
  std::string emit(ExprId root) { return emit(std::vector<ExprId>{root})[0]; }
  // Emits, as variables, what the roots need of nodes whose axes are all bound: what stands before a loop.
  void emit_independent(const std::vector<ExprId>& roots);
  // An index expression of bound axes and of loaded values that were emitted.
  std::string index(const IndexExpr& e) { return index_text_(e); }
  const IndexText& index_text() const { return index_text_; }

  // The text of a node from here on, made by the schedule (a cached value, a lane of a vector).
  void define(ExprId id, std::string text);

  // What was bound and emitted since the mark is forgotten: the end of a block of the emitted text.
  struct Mark {
    std::size_t defined, axes;
  };
  Mark mark() const { return {defined_.size(), bound_.size()}; }
  void rewind(Mark mark);

  // Axes that the value of a node depends on (those of reductions inside it excluded).
  bool depends_on(ExprId id, std::uint32_t axis) const;
  std::vector<std::uint32_t> axes_of(ExprId id) const;
  // What a variable for it is best called, before that is made unique.
  std::string plain_name(ExprId id) const;
  // What a load reads: position in its tensor, in elements.
  IndexExpr position(ExprId load) const;

  // Overrules how a load is written; "" leaves it as it is.
  std::function<std::string(ExprId load)> load_text;
  // Overrules how reductions (of one stage, over the same axes) are computed: true where it did, having defined each.
  std::function<bool(const std::vector<ExprId>& reductions)> reduce_hook;

  // --- for schedules that write reductions themselves
  // The loop body: declares accumulators, or adds one more element to them.
  struct Accumulator {
    ExprId reduction;
    std::string name;      // of the value; argmax and argmin: an Extreme's
    std::string type;      // "float", "Extreme<float>"
    std::string identity;  // its initial value
    std::string combine;   // "Sum{}", "FirstMaximum{}"
    bool extreme = false;
  };
  Accumulator accumulator(ExprId reduction);
  // Statements that add the bodies at the bound axes to the accumulators.
  void accumulate(const std::vector<Accumulator>& accumulators);
  // The result's text, once the accumulators are complete.
  std::string result(const Accumulator& accumulator) const;
  // The position of the current element among the reduction's, row-major over its axes.
  IndexExpr reduced_position(ExprId reduction) const;
  // Where positions begin, if not at 0: axes that number the vectors of memory do so at its beginning.
  IndexExpr reduced_from = 0;
  // Are elements added in the order of their positions? What is as great as one before is not taken then.
  bool positions_rise = false;

  const Kernel& kernel() const { return kernel_; }
  KernelWriter& writer() { return writer_; }

 private:
  struct Text {
    std::string text;
    bool tight = true;  // binds as tightly as a name
  };
  Text make(ExprId id);
  Text make_load(ExprId id);
  std::string arg(const ExprNode& n, std::size_t i) const;    // as an operand: in parentheses where needed
  std::string loose(const ExprNode& n, std::size_t i) const;  // as a function's argument
  Text arithmetic(const ExprNode& n) const;
  bool compares_indices(const ExprNode& n) const;
  Text call(std::string_view function, const ExprNode& n) const;
  // Its fast form, where it has one and may take it (emit_fast_math.cpp).
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
  bool here(ExprId id) const;  // all axes it depends on are bound
  std::vector<ExprId> reachable_until(const std::vector<ExprId>& roots) const;
  std::string preferred_name(ExprId id) const;

  const Kernel& kernel_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  IndexText index_text_;
  std::vector<std::vector<std::uint32_t>> dependences_;  // sorted axes
  std::vector<Text> texts_;
  std::vector<ExprId> defined_;
  std::vector<std::string> axis_text_;
  std::vector<std::uint32_t> bound_;
  std::vector<ValueId> names_;
  std::vector<bool> inexact_;  // by node, once asked for
};

// Does the kernel need 64-bit index arithmetic? `threads` is the number of threads that a launch may have.
bool needs_wide_index(const Kernel& kernel, const Graph& graph, const IndexExpr& threads);

// "1.5f", "-0.0f", a NaN and infinities by their bits.
std::string constant_text(const ExprNode& constant);
std::string zero_text(ScalarType type);

// The statement that stores a value of the compute type at a position of an output: `out[at] = to_bf16(value);`
std::string store_text(KernelWriter& writer, const KernelOutput& output, std::string_view position,
                       std::string_view value);

}  // namespace fusec
