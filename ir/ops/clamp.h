// Lower and upper bounds of a value. If value and bound are both 0, the result is the value with its sign, as in
// PyTorch: relu(-0) is -0. kMax and kMin, which order +0 above -0, would give +0.
#pragma once

#include "ir/formula.h"

namespace fusec::ops {

inline bool is_float_zero(E e) {
  const ExprNode& n = (*e.pool)[e.id];
  return n.op == ExprOp::kConstant && is_float(n.type) && n.real == 0;
}
inline E at_least(E x, E bound) {
  return is_float_zero(bound) ? select(x < bound, bound, x) : maximum(x, bound);
}
inline E at_most(E x, E bound) {
  return is_float_zero(bound) ? select(x > bound, bound, x) : minimum(x, bound);
}
inline E relu(E x) {
  return at_least(x, E{x.pool, x.pool->constant(x.type(), 0.0)});
}

}  // namespace fusec::ops
