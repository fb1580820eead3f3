#include "analysis/kernel/negative_zero.h"

#include <cmath>

namespace fusec {
namespace {

constexpr int kMostDepth = 6;  // at this depth the answer is "may be"

bool may_be(const ExprPool& pool, ExprId id, int depth) {
  const ExprNode& n = pool[id];
  if (!is_float(n.type)) return false;
  if (depth == 0) return true;
  const auto operand = [&](std::size_t i) { return may_be(pool, n.args[i], depth - 1); };
  switch (n.op) {
    case ExprOp::kConstant:
      return n.real == 0 && std::signbit(n.real);
    case ExprOp::kAdd:
      return operand(0) && operand(1);
    case ExprOp::kSub:
    case ExprOp::kSqrt:
      return operand(0);
    case ExprOp::kSelect:
      return operand(1) || operand(2);
    case ExprOp::kReduce:
      return n.reduction != Reduction::kSum;
    case ExprOp::kConvert:
      return is_float(pool[n.args[0]].type);
    case ExprOp::kAbs:
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kSigmoid:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool may_be_negative_zero(const ExprPool& pool, ExprId id) {
  return may_be(pool, id, kMostDepth);
}

ExprId fold_to_maximum(ExprPool& pool, ExprId condition, ExprId then, ExprId otherwise) {
  const ExprNode& less = pool[condition];
  const ExprNode& zero = pool[then];
  const bool is_relu = less.op == ExprOp::kLt && less.args[0] == otherwise && less.args[1] == then &&
                       zero.op == ExprOp::kConstant && is_float(zero.type) && zero.real == 0 &&
                       !std::signbit(zero.real);
  if (!is_relu || may_be_negative_zero(pool, otherwise)) return kNoExpr;
  return pool.binary(ExprOp::kMax, otherwise, then);
}

}  // namespace fusec
