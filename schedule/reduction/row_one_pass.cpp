#include "schedule/reduction/row_one_pass.h"

#include <cmath>

#include "schedule/reduction/row_exponentials.h"

namespace fusec {
namespace {

// True for the maximum, or for a select that is 0 if the maximum is infinite.
bool is_finite_maximum(const ExprPool& pool, ExprId shift, ExprId maximum) {
  const ExprNode& n = pool[shift];
  if (shift == maximum) return true;
  const auto is_zero = [](const ExprNode& e) { return e.op == ExprOp::kConstant && e.real == 0; };
  return n.op == ExprOp::kSelect && n.args[2] == maximum && is_zero(pool[n.args[1]]) &&
         pool[n.args[0]].op == ExprOp::kIsInf && pool[n.args[0]].args[0] == maximum;
}

// The element x of exp(x - maximum); nothing for other expressions.
std::optional<ExprId> exponent_below(const ExprPool& pool, const ExprNode& body, ExprId maximum) {
  if (is_shared_power_of_two(pool, body)) {
    const ExprNode& sum = pool[body.args[0]];
    const ExprNode& product = pool[pool[sum.args[2]].args[0]];
    return product.args[0] == maximum ? std::optional(sum.args[0]) : std::nullopt;
  }
  if (body.op != ExprOp::kExp) return std::nullopt;
  const ExprNode& difference = pool[body.args[0]];
  return difference.op == ExprOp::kSub && is_finite_maximum(pool, difference.args[1], maximum)
             ? std::optional(difference.args[0])
             : std::nullopt;
}

// True for the mean: the sum divided by, or multiplied with, a number.
bool is_mean(const ExprPool& pool, ExprId id, ExprId sum) {
  const ExprNode& n = pool[id];
  return (n.op == ExprOp::kDiv || n.op == ExprOp::kMul) && n.args[0] == sum;
}

// The element x of (x - mean)^2; nothing for other expressions.
std::optional<ExprId> element_of_square(const ExprPool& pool, const ExprNode& body, ExprId sum) {
  if (body.op != ExprOp::kMul || body.args[0] != body.args[1]) return std::nullopt;
  const ExprNode& difference = pool[body.args[0]];
  if (difference.op != ExprOp::kSub || !is_mean(pool, difference.args[1], sum)) return std::nullopt;
  return difference.args[0];
}

// k for an expression x * 2^-k, else 0.
int scale_of(const ExprPool& pool, const ExprNode& product) {
  if (product.op != ExprOp::kMul || pool[product.args[1]].op != ExprOp::kConstant) return 0;
  int exponent = 0;
  const bool is_power_of_two = std::frexp(pool[product.args[1]].real, &exponent) == 0.5;
  return is_power_of_two && exponent <= 0 ? 1 - exponent : 0;
}

}  // namespace

std::optional<RowOnePass> row_one_pass(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  if (form.kernel.exact_steps || form.kernel.numerics.precise_math) return std::nullopt;
  const std::vector<ReductionLoop> loops = reduction_loops(form);
  if (loops.size() != 2 || loops[0].reductions.size() != 1 || loops[1].reductions.size() != 1) return std::nullopt;
  const ExprId first = loops[0].reductions[0], second = loops[1].reductions[0];
  const ExprNode &one = pool[first], &other = pool[second], &body = pool[other.args[0]];
  const bool wide = one.type == ScalarType::kFloat64 && one.reduction == Reduction::kSum;
  if (one.axes != other.axes || (one.type != ScalarType::kFloat32 && !wide) || other.type != one.type ||
      other.reduction != Reduction::kSum)
    return std::nullopt;
  std::optional<ExprId> element;
  const int scale = one.reduction == Reduction::kSum ? scale_of(pool, pool[one.args[0]]) : 0;
  const ExprId added = scale == 0 ? one.args[0] : pool[one.args[0]].args[0];
  if (one.reduction == Reduction::kMax) element = exponent_below(pool, body, first);
  if (one.reduction == Reduction::kSum) element = element_of_square(pool, body, first);
  if (element != added) return std::nullopt;
  if (one.reduction == Reduction::kMax)
    return RowOnePass{.kind = RowOnePass::Kind::kExponentials, .first = first, .second = second, .element = *element};
  return RowOnePass{.kind = RowOnePass::Kind::kMoments,
                    .first = first,
                    .second = second,
                    .element = *element,
                    .mean = pool[body.args[0]].args[1],
                    .scale = scale};
}

}  // namespace fusec
