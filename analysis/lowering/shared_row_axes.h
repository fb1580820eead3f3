// Reductions of a row over one and the same axis, whatever stands in between: what a value before them is at that axis
// then stands in a kernel once, not once more for each reduction that needs it.
//
//   y = softmax(x), z = softmax(y)
//     max_k y[i, k] and sum_l exp(y[i, l] - ...) need y at k, l and j, each with a maximum and a sum of its own
//     max_k y[i, k] and sum_k exp(y[i, k] - ...) need y at k and j, with a maximum and a sum of x[i, k]
//
// A reduction that stands inside another one's body and has its axis means its own; it does not depend on the other's.
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

  // A formula's value, made of the pool's expressions from `first` on, with its reductions over axes that others have,
  // too. `rows` are the indices at which it was asked for and on which its reductions depend: none of them may be an
  // axis that is shared, else the formula stays as it is; nor may what it reduces be guarded by a condition on one.
  ExprId take(ExprId first, ExprId value, std::span<const IndexExpr> rows);

  // The same formula without the guards of those loads of which it is said that they may go.
  ExprId without_guard(ExprId first, ExprId value, const std::function<bool(const ExprNode& load)>& goes);

  // Was the expression part of a formula in whose place another stands now?
  bool is_given_up(ExprId id) const { return id < given_up_.size() && given_up_[id]; }

 private:
  // What becomes of an expression whose operands have been changed.
  using Change = std::function<void(ExprNode&)>;
  ExprId rewritten(ExprId first, ExprId value, const Change& change);

  ExprPool& pool_;
  std::map<std::vector<IndexExpr>, std::vector<std::uint32_t>> shared_;  // by the extents of a reduction's axes
  std::vector<bool> given_up_;
};

}  // namespace fusec
