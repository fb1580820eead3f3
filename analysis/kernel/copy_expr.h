// Copies expressions from one pool to another while replacing axes and loads: the one rewriting step of code
// generation. Substituting a producer for a load, splitting an axis in two and renaming axes are all this.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/expr.h"

namespace fusec {

class ExprCopier {
 public:
  ExprCopier(const ExprPool& from, ExprPool& to);

  // The copy of `root`. Without recursion, whatever the depth; each node is copied once.
  ExprId copy(ExprId root);
  IndexExpr copy(const IndexExpr& e);  // whose loaded values, if any, were copied with some root
  std::uint32_t copy_axis(std::uint32_t axis);

  // An axis of `from` becomes this expression of `to`'s axes. Axes that are not mentioned here become fresh ones. Axes
  // of reductions must become plain axes, or stand in `reduction_axes`.
  std::vector<std::optional<IndexExpr>> axis;
  // Axes of extent 1 that are not mentioned here are 0, and nothing is reduced along them.
  bool drops_units = false;
  // Reductions over exactly these axes of `from` become reductions over those of `to`, outermost first.
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> reduction_axes;
  // Where a load's value comes from: an expression of `from` that replaces it. kNoExpr keeps the load.
  std::function<ExprId(ExprId load)> replacement = nullptr;
  // What stands in an expression's place in `to`, kNoExpr where it stays; `copied` says what has become of operands,
  // and of theirs.
  using Copied = std::function<ExprId(ExprId)>;
  std::function<ExprId(ExprId id, const Copied& copied)> rewritten = nullptr;
  // What is done to the copy of a load's replacement (rounding it).
  std::function<ExprId(ExprId load, ExprId copied)> finish = nullptr;
  // What becomes of a load's copy that stays a load.
  std::function<ExprId(ExprId load, ExprId copied)> finish_load = nullptr;

 private:
  std::vector<ExprId> operands_of(ExprId id) const;
  const IndexExpr& value_of(std::uint32_t axis);
  ExprId copy_node(ExprId id);

  const ExprPool& from_;
  ExprPool& to_;
  std::vector<ExprId> done_;
};

// The kernel with output axes rearranged. `values` says what becomes of each output axis, over the axes `new_axes` of
// the new pool, which `make_axes` adds to it first.
struct AxisChange {
  std::vector<IndexExpr> values;        // one for each axis of the outputs
  std::vector<std::uint32_t> new_axes;  // the outputs' axes from now on
};
Kernel change_axes(const Kernel& kernel, const std::function<AxisChange(ExprPool&)>& make_axes);
// The same, where the caller also says what becomes of the axes of reductions. Each of `follow`, expressions of the
// kernel, becomes what it is in the result.
Kernel change_axes(const Kernel& kernel, const std::function<AxisChange(ExprPool&, ExprCopier&)>& make_axes,
                   std::span<ExprId> follow = {});
// Output axes stay as they are.
AxisChange same_axes(const Kernel& kernel, ExprPool& pool);

}  // namespace fusec
