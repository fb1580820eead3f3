#include "schedule/reduction/row_division.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/kernel/copy_expr.h"

namespace fusec {
namespace {

constexpr double kMost = 1e30;  // numbers between 1 / kMost and kMost have reciprocals in the same range

class Divisors {
 public:
  explicit Divisors(const ExprPool& pool) : pool_(pool) {}

  // True if the value is positive and within the range, or infinite or NaN. Quotient and product are then equal.
  bool is_moderate(ExprId id) const {
    std::vector<ExprId> left = {id};
    while (!left.empty()) {
      const ExprNode& n = pool_[left.back()];
      left.pop_back();
      switch (n.op) {
        case ExprOp::kConstant:
          if (!(n.real >= 1 / kMost && n.real <= kMost)) return false;
          break;
        case ExprOp::kSqrt:  // of float32: 0, or between 1e-23 and 2e19
          break;
        case ExprOp::kMax:
        case ExprOp::kAdd:
          left.insert(left.end(), {n.args[0], n.args[1]});
          break;
        case ExprOp::kReduce:
          if (!is_sum_of_exponentials(n)) return false;
          break;
        default:
          return false;
      }
    }
    return true;
  }

 private:
  // True for the sum of exp(x - max x): at least 1, at most the number of its terms.
  bool is_sum_of_exponentials(const ExprNode& sum) const {
    if (sum.reduction != Reduction::kSum) return false;
    const ExprNode& exponential = pool_[sum.args[0]];
    if (exponential.op != ExprOp::kExp && exponential.op != ExprOp::kExp2) return false;
    const ExprNode& difference = pool_[exponential.args[0]];
    if (difference.op != ExprOp::kSub) return false;
    const ExprNode& greatest = pool_[difference.args[1]];
    return greatest.op == ExprOp::kReduce && greatest.reduction == Reduction::kMax && greatest.axes == sum.axes &&
           greatest.args[0] == difference.args[0];
  }

  const ExprPool& pool_;
};

}  // namespace

Kernel divide_once_a_row(const Kernel& kernel) {
  if (kernel.exact_steps || kernel.numerics.precise_math) return kernel;
  const auto depends = dependences(kernel.pool);
  const Divisors divisors(kernel.pool);
  return change_axes(kernel, [&](ExprPool& pool, ExprCopier& copier) {
    copier.rewritten = [&](ExprId id, const ExprCopier::Copied& copied) {
      const ExprNode& n = kernel.pool[id];
      if (n.op != ExprOp::kDiv || n.type != ScalarType::kFloat32 || kernel.pool[n.args[1]].op == ExprOp::kConstant)
        return kNoExpr;
      if (std::ranges::includes(depends[n.args[1]], depends[n.args[0]]) || !divisors.is_moderate(n.args[1]))
        return kNoExpr;
      return pool.binary(ExprOp::kMul, copied(n.args[0]), pool.unary(ExprOp::kReciprocal, copied(n.args[1])));
    };
    return same_axes(kernel, pool);
  });
}

}  // namespace fusec
