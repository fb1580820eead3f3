#include "analysis/kernel/narrow_comparisons.h"

#include <algorithm>
#include <limits>
#include <span>

#include "ir/bounds.h"

namespace fusec {
namespace {

// Returns whether `number` is constant along some axis of `place`, so that one clamp serves several comparisons.
bool is_same_along(const ExprPool& pool, ExprId number, const IndexExpr& place) {
  std::vector<std::uint32_t> axes;
  for (const Variable v : variables_of(place)) {
    if (v.kind != Variable::Kind::kAxis) return false;
    axes.push_back(v.id);
  }
  for (const ExprId id : reachable(pool, std::span(&number, 1))) {
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kReduce) return false;
    for (const IndexExpr& e : n.indices)
      for (const Variable v : variables_of(e))
        if (v.kind == Variable::Kind::kAxis) std::erase(axes, v.id);
  }
  return !axes.empty();
}

}  // namespace

ExprId narrow_comparison(ExprPool& pool, ExprOp op, ExprId left, ExprId right) {
  if (op != ExprOp::kEq && op != ExprOp::kNe) return kNoExpr;
  if (pool[left].op == ExprOp::kIndex) std::swap(left, right);
  const auto is_constant_or_place = [&](ExprId id) {
    return pool[id].op == ExprOp::kIndex || pool[id].op == ExprOp::kConstant;
  };
  if (pool[left].type != ScalarType::kInt64 || pool[right].op != ExprOp::kIndex || is_constant_or_place(left))
    return kNoExpr;
  const IndexExpr place = pool[right].indices[0];
  const Range range = range_of(place, pool.bounds());
  using Int = std::numeric_limits<std::int32_t>;
  if (range.min <= Int::min() || range.max >= Int::max() || !is_same_along(pool, left, place)) return kNoExpr;
  const auto whole = [&](std::int64_t value) { return pool.constant(ScalarType::kInt64, value); };
  const ExprId clamped =
      pool.binary(ExprOp::kMin, pool.binary(ExprOp::kMax, left, whole(range.min - 1)), whole(range.max + 1));
  return pool.binary(op, pool.convert(clamped, ScalarType::kInt32), pool.convert(right, ScalarType::kInt32));
}

}  // namespace fusec
