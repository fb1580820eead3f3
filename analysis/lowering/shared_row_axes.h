// Makes the reductions of a row use one common axis. A value that several of these reductions read then occurs in the
// kernel once, not once per reduction.
//
//   y = softmax(x), z = softmax(y)
//     max_k y[i, k] and sum_l exp(y[i, l] - ...) need y at k, l and j, each with a maximum and a sum of its own
//     max_k y[i, k] and sum_k exp(y[i, k] - ...) need y at k and j, with a maximum and a sum of x[i, k]
//
// A reduction inside the body of another one with the same axis rebinds the axis; it does not depend on the outer one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace fusec {

class SharedRowAxes {
 public:
  explicit SharedRowAxes(ExprPool& pool) : pool_(pool) {}

  // Returns the formula's `value` with its reductions over the shared axes. The formula consists of the pool's
  // expressions from `first` on. `rows` are the indices of the load that its reductions depend on. Returns `value`
  // unchanged if one of `rows`, or a guard inside a reduction, mentions a shared axis, or if extents depend on more
  // than symbols.
  ExprId take(ExprId first, ExprId value, std::span<const IndexExpr> rows);

  // Returns the formula without the guards of the loads for which `goes` returns true.
  ExprId without_guard(ExprId first, ExprId value, const std::function<bool(const ExprNode& load)>& goes);

  // Returns whether the expression belongs to a formula that was replaced.
  bool is_given_up(ExprId id) const { return id < given_up_.size() && given_up_[id]; }

 private:
  // Changes an expression whose operands are already replaced.
  using Change = std::function<void(ExprNode&)>;
  ExprId rewritten(ExprId first, ExprId value, const Change& change);

  ExprPool& pool_;
  std::map<std::vector<IndexExpr>, std::vector<std::uint32_t>> shared_;  // by the extents of a reduction's axes
  std::vector<bool> given_up_;
};

}  // namespace fusec
