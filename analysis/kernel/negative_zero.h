// Can an expression be -0? What cannot needs no care for the sign of zero.
#pragma once

#include "ir/expr.h"

namespace fusec {

// False only where that is proven. A sum begins with +0, so that it never ends with -0; a product can.
bool may_be_negative_zero(const ExprPool& pool, ExprId id);

// select(x < 0, 0, x), which keeps x = -0 as it is, is the one instruction of max(x, 0) where x cannot be -0; kNoExpr
// where `select` is something else.
ExprId fold_to_maximum(ExprPool& pool, ExprId condition, ExprId then, ExprId otherwise);

}  // namespace fusec
