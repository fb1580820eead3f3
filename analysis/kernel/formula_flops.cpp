#include "analysis/kernel/formula_flops.h"

#include <algorithm>

#include "analysis/kernel/counted_points.h"
#include "analysis/kernel/loads.h"
#include "analysis/kernel/operation_work.h"
#include "ir/type.h"

namespace fusec {
namespace {

// select(x < bound, bound, x), or with >: a maximum or minimum that keeps the sign of zero.
bool is_bounded(const ExprPool& pool, const ExprNode& node) {
  if (node.op != ExprOp::kSelect) return false;
  const ExprNode& beyond = pool[node.args[0]];
  return (beyond.op == ExprOp::kLt || beyond.op == ExprOp::kGt) && beyond.args[0] == node.args[2] &&
         beyond.args[1] == node.args[1];
}

class OperationCounter {
 public:
  explicit OperationCounter(const Kernel& kernel) : kernel_(kernel), pool_(kernel.pool), count_(kernel) {
    for (ExprId id = 0; id < pool_.size(); ++id) {
      that_hold_.push_back(share_that_holds(id));
      not_zero_.push_back(share_not_zero(id));
    }
  }

  double distinct_flops() const;

 private:
  double share_that_holds(ExprId condition) const;
  double share_not_zero(ExprId id) const;
  std::vector<std::uint8_t> arithmetic() const;

  const Kernel& kernel_;
  const ExprPool& pool_;
  const CountedPoints count_;
  // By expression. Operands precede their users.
  std::vector<double> that_hold_, not_zero_;
};

// Returns the share of points where the condition holds: 1 / stride for `index % stride == 0`, else 1.
double OperationCounter::share_that_holds(ExprId condition) const {
  const ExprNode& node = pool_[condition];
  if (node.op == ExprOp::kAnd) return that_hold_[node.args[0]] * that_hold_[node.args[1]];
  const auto quotient = whole_quotient(pool_, condition);
  return quotient ? 1 / static_cast<double>(quotient->divisor.as_constant().value_or(1)) : 1;
}

// Returns the share of points where the value is not a constant 0. A transposed convolution reads its input at one
// point per stride; only there a multiplication and an addition count.
double OperationCounter::share_not_zero(ExprId id) const {
  const ExprNode& node = pool_[id];
  if (node.op == ExprOp::kMul) return std::min(not_zero_[node.args[0]], not_zero_[node.args[1]]);
  if (node.op == ExprOp::kConvert || node.op == ExprOp::kRound) return not_zero_[node.args[0]];
  if (node.op == ExprOp::kReduce && node.reduction == Reduction::kSum) return not_zero_[node.args[0]];
  if (node.op != ExprOp::kSelect) return 1;
  const ExprNode& otherwise = pool_[node.args[2]];
  const bool zero = otherwise.op == ExprOp::kConstant && otherwise.integer == 0 && otherwise.real == 0;
  return zero ? that_hold_[node.args[0]] : 1;
}

// Returns 1 for each value that is needed for more than indices and comparisons of integers.
std::vector<std::uint8_t> OperationCounter::arithmetic() const {
  std::vector<std::uint8_t> wanted(pool_.size(), 0);
  for (const ExprId root : roots_of(kernel_)) wanted[root] = 1;
  for (std::size_t i = pool_.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    const ExprNode& node = pool_[static_cast<ExprId>(i)];
    const bool compares = node.op >= ExprOp::kEq && node.op <= ExprOp::kGe;
    if (compares && !is_float(pool_[node.args[0]].type)) continue;
    for (const ExprId a : node.args)
      if (a != kNoExpr) wanted[a] = 1;
  }
  return wanted;
}

double OperationCounter::distinct_flops() const {
  const std::vector<std::uint8_t> counts = arithmetic();
  double flops = 0;
  for (const ExprId id : count_.distinct(count_.between(roots_of(kernel_), {}))) {
    const ExprNode& node = pool_[id];
    if (!counts[id]) continue;
    double times = count_.points(count_.depends(id));
    if (node.op == ExprOp::kReduce) times *= count_.points(node.axes);
    if (node.op == ExprOp::kReduce || node.op == ExprOp::kMul) times *= not_zero_[id];
    flops += times * (is_bounded(pool_, node) ? 1 : operation_work(node).flops);
  }
  return flops;
}

}  // namespace

double formula_flops(const Kernel& kernel) {
  return OperationCounter(kernel).distinct_flops();
}

}  // namespace fusec
