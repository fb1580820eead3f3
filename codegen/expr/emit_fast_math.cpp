// Fast forms of float operations, without division and slow paths (docs/numerics.md).
//
//   exp(x - max)     exp_fast: the result is at most 1, so an error in x's last bits is harmless
//                    exp2_fast if the row's exponentials are powers of two (schedule/reduction/row_exponentials)
//   e / total        e * reciprocal_fast(total), if total is a sum of such exponentials and so at least 1
//   a / b            divide_fast if either operand is inexact: a transcendental function, a sum of many elements
//   a / sqrt(b)      a * rsqrtf(b), under the same condition: a square root is never subnormal
//   sum / 4095       a * high + a * low, with 1 / 4095 as two floats: correctly rounded
//
// Divisions of exact operands stay IEEE divisions, because a later rounding to an integer or to few bits could amplify
// the error. Forms that span several operations are not used if results must not depend on fusion.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "codegen/expr/emit_expr.h"
#include "schedule/reduction/row_exponentials.h"

namespace fusec {
namespace {

bool is_inexact_function(ExprOp op) {
  switch (op) {
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kExpm1:
    case ExprOp::kLog:
    case ExprOp::kLog1p:
    case ExprOp::kRsqrt:
    case ExprOp::kTanh:
    case ExprOp::kErf:
    case ExprOp::kSigmoid:
      return true;
    default:
      return false;
  }
}

bool is_number(const ExprNode& n, double number) {
  return n.op == ExprOp::kConstant && n.real == number;
}

bool is_sum(const ExprNode& n) {
  return n.op == ExprOp::kReduce && n.reduction == Reduction::kSum && n.type == ScalarType::kFloat32;
}

// True if `value`, computed from exp(x), is only used where exp(x) is finite or its infinity makes no difference.
bool is_read_below_overflow(const Kernel& kernel, const ExprNode& value, ExprId x) {
  const ExprPool& pool = kernel.pool;
  constexpr double kGreatestExponent = 88.72283935546875;
  const auto is_value = [&](ExprId id) { return id != kNoExpr && &pool[id] == &value; };
  for (const KernelOutput& output : kernel.outputs)
    if (is_value(output.expr)) return false;
  for (ExprId id = 0; id < pool.size(); ++id) {
    const ExprNode& reader = pool[id];
    if (std::ranges::none_of(reader.args, is_value) || reader.op == ExprOp::kTanh) continue;
    if (reader.op == ExprOp::kDiv && is_value(reader.args[0]) && is_read_below_overflow(kernel, reader, x)) continue;
    if (reader.op != ExprOp::kSelect || is_value(reader.args[0]) || is_value(reader.args[1])) return false;
    const ExprNode& above = pool[reader.args[0]];
    if (above.op != ExprOp::kGt || above.args[0] != x || pool[above.args[1]].op != ExprOp::kConstant ||
        !(pool[above.args[1]].real <= kGreatestExponent))
      return false;
  }
  return true;
}

}  // namespace

// True if the value depends on the approximation of a function or on the order of a sum.
bool ExprEmitter::inexact(ExprId id) {
  if (inexact_.empty()) {
    inexact_.resize(pool_.size(), false);
    for (ExprId i = 0; i < pool_.size(); ++i) {
      const ExprNode& n = pool_[i];
      if (!is_float(n.type)) continue;
      inexact_[i] = is_inexact_function(n.op) || is_sum(n);
      for (const ExprId a : n.args) inexact_[i] = inexact_[i] || (a != kNoExpr && inexact_[a]);
    }
  }
  return inexact_[id];
}

bool ExprEmitter::is_exp_below_maximum(const ExprNode& n) const {
  if (n.op != ExprOp::kExp) return false;
  const ExprNode& difference = pool_[n.args[0]];
  if (difference.op != ExprOp::kSub) return false;
  ExprId shift = difference.args[1];  // 0 if the maximum is infinite
  const ExprNode& chosen = pool_[shift];
  if (chosen.op == ExprOp::kSelect && pool_[chosen.args[0]].op == ExprOp::kIsInf &&
      pool_[chosen.args[0]].args[0] == chosen.args[2] && is_number(pool_[chosen.args[1]], 0))
    shift = chosen.args[2];
  return is_maximum_of_row(pool_, shift);
}

// Division by a whole number, or by one times a power of two. `high` is the largest float below the reciprocal and
// `low` the remainder to 48 bits. For a whole number below 2^20, the quotient is farther from a rounding boundary than
// the error of this reciprocal, so the result is correctly rounded.
std::optional<ExprEmitter::Text> ExprEmitter::exact_mean(const ExprNode& n) {
  const ExprNode& count = pool_[n.args[1]];
  if (count.op != ExprOp::kConstant || !(count.real > 0) || std::isinf(count.real)) return std::nullopt;
  double whole = count.real;  // times a power of two if the elements were scaled
  while (whole != std::floor(whole)) whole *= 2;
  if (whole < 3 || whole >= 1 << 20 || std::exp2(std::floor(std::log2(whole))) == whole) return std::nullopt;
  const double reciprocal = 1 / count.real;
  float high = static_cast<float>(reciprocal);
  if (high > reciprocal) high = std::nextafter(high, 0.0f);
  const double low = std::fma(-count.real, static_cast<double>(high), 1.0) / count.real;
  ExprNode part = count;
  part.real = high;
  const std::string high_text = constant_text(part);
  part.real = static_cast<float>(low);
  writer_.use("exact_mean");
  return Text{fmt::format("exact_mean({}, {}, {})", loose(n, 0), high_text, constant_text(part)), true};
}

std::optional<ExprEmitter::Text> ExprEmitter::fast_quotient(const ExprNode& n) {
  const ExprNode& divisor = pool_[n.args[1]];
  if (divisor.op == ExprOp::kSqrt && inexact(divisor.args[0])) {
    if (loose(n, 1).starts_with("sqrtf("))  // a root with no other use; others have a name
      return Text{fmt::format("{} * rsqrtf({})", arg(n, 0), loose(divisor, 0)), false};
    writer_.use("reciprocal_fast");
    return Text{fmt::format("{} * reciprocal_fast({})", arg(n, 0), loose(n, 1)), false};
  }
  if (is_sum(divisor) && is_exp_below_maximum(pool_[divisor.args[0]])) {
    writer_.use("reciprocal_fast");
    return Text{fmt::format("{} * reciprocal_fast({})", arg(n, 0), loose(n, 1)), false};
  }
  // A sum of few elements may be unrolled into additions.
  if (pool_[n.args[0]].op == ExprOp::kAdd && divisor.op == ExprOp::kConstant && n.type == ScalarType::kFloat32)
    if (auto mean = exact_mean(n)) return mean;
  if (!inexact(n.args[0]) && !inexact(n.args[1])) return std::nullopt;
  // A mean is exact: the mean of equal values must be that value, or a norm would divide by the rounding error.
  if (is_sum(pool_[n.args[0]]) && !inexact(n.args[1])) return exact_mean(n);
  if (is_number(pool_[n.args[0]], 1)) {
    writer_.use("reciprocal_fast");
    return Text{fmt::format("reciprocal_fast({})", loose(n, 1)), true};
  }
  writer_.use("divide_fast");
  return call("divide_fast", n);
}

// log1p(exp(x)), without the part that is 0.
std::optional<ExprEmitter::Text> ExprEmitter::fast_softplus(const ExprNode& n) {
  const ExprNode& exp = pool_[n.args[0]];
  if (kernel_.exact_steps || exp.op != ExprOp::kExp || !available(exp.args[0])) return std::nullopt;
  const ExprNode& x = pool_[exp.args[0]];
  const bool below_0 = x.op == ExprOp::kNeg && pool_[x.args[0]].op == ExprOp::kAbs;
  const bool overflows = !below_0 && !is_read_below_overflow(kernel_, n, exp.args[0]);
  writer_.use(overflows ? "log1p_of_exp" : "softplus");
  return Text{fmt::format("{}({})",
                          below_0     ? "softplus_below"
                          : overflows ? "log1p_of_exp"
                                      : "softplus",
                          loose(exp, 0)),
              true};
}

// Prints a select without a branch if one side is a fast form computed here. For softplus, the side that is x above a
// threshold then matches the other side bit for bit.
std::optional<ExprEmitter::Text> ExprEmitter::fast_select(const ExprNode& n) {
  constexpr double kOnlyX = 16;
  const ExprNode& condition = pool_[n.args[0]];
  const ExprNode& otherwise = pool_[n.args[2]];
  if (condition.op == ExprOp::kGt && condition.args[0] == n.args[1] && otherwise.op == ExprOp::kLog1p &&
      pool_[otherwise.args[0]].op == ExprOp::kExp && pool_[otherwise.args[0]].args[0] == n.args[1] &&
      pool_[condition.args[1]].op == ExprOp::kConstant && pool_[condition.args[1]].real >= kOnlyX &&
      loose(n, 2).starts_with("softplus("))
    return texts_[n.args[2]];
  const auto has_fast_form = [&](std::size_t side) {
    const std::string text = loose(n, side);
    return std::ranges::any_of(std::array{"expm1_fast(", "log1p_fast(", "softplus", "sigmoid("},
                               [&](const char* form) { return text.find(form) != std::string::npos; });
  };
  if (!has_fast_form(1) && !has_fast_form(2)) return std::nullopt;
  writer_.use("choose");
  return Text{fmt::format("choose({}, {}, {})", loose(n, 0), loose(n, 1), loose(n, 2)), true};
}

std::optional<ExprEmitter::Text> ExprEmitter::fast_form(const ExprNode& n) {
  if (kernel_.numerics.precise_math || n.type != ScalarType::kFloat32) return std::nullopt;
  const auto function = [&](const char* name) {
    writer_.use(name);
    return call(name, n);
  };
  switch (n.op) {
    case ExprOp::kSigmoid:
      return function("sigmoid");
    case ExprOp::kLog: {
      const ExprNode& sigmoid = pool_[n.args[0]];
      if (sigmoid.op != ExprOp::kSigmoid || !available(sigmoid.args[0])) return function("log_fast");
      writer_.use("log_of_sigmoid");
      return Text{fmt::format("log_of_sigmoid({}, {})", loose(n, 0), loose(sigmoid, 0)), true};
    }
    case ExprOp::kLog1p:
      if (const auto softplus = fast_softplus(n)) return softplus;
      return function("log1p_fast");
    case ExprOp::kExpm1:
      return function("expm1_fast");
    case ExprOp::kSelect:
      return fast_select(n);
    default:
      break;
  }
  if (kernel_.exact_steps) return std::nullopt;
  switch (n.op) {
    case ExprOp::kExp:
      return is_exp_below_maximum(n) ? std::optional(function("exp_fast")) : std::nullopt;
    case ExprOp::kExp2:
      return is_shared_power_of_two(pool_, n) ? std::optional(function("exp2_fast")) : std::nullopt;
    case ExprOp::kReciprocal:
      return inexact(n.args[0]) ? std::optional(function("reciprocal_fast")) : std::nullopt;
    case ExprOp::kDiv:
      return fast_quotient(n);
    case ExprOp::kTanh: {
      const ExprNode& log = pool_[n.args[0]];
      if (log.op != ExprOp::kLog1p || pool_[log.args[0]].op != ExprOp::kExp) return std::nullopt;
      if (!available(pool_[log.args[0]].args[0])) return std::nullopt;  // values kept by the schedule have no text
      writer_.use("tanh_of_softplus");
      return Text{fmt::format("tanh_of_softplus({})", loose(pool_[log.args[0]], 0)), true};
    }
    case ExprOp::kAdd:
      for (std::size_t i = 0; i < 2; ++i) {
        const ExprNode& erf = pool_[n.args[i]];
        if (erf.op != ExprOp::kErf || !is_number(pool_[n.args[1 - i]], 1) || !available(erf.args[0])) continue;
        writer_.use("one_plus_erf");
        return Text{fmt::format("one_plus_erf({})", loose(erf, 0)), true};
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace fusec
