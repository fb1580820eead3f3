// Can an expression be -0? If it cannot, rewrites may ignore the sign of zero.
#pragma once

#include "ir/expr.h"

namespace fusec {

// Returns false only if -0 is proven impossible. A sum starts from +0 and never becomes -0; a product can be -0.
bool may_be_negative_zero(const ExprPool& pool, ExprId id);

// Returns max(x, 0) for select(x < 0, 0, x) if x cannot be -0, else kNoExpr. The select keeps x = -0; the maximum is
// one instruction.
ExprId fold_to_maximum(ExprPool& pool, ExprId condition, ExprId then, ExprId otherwise);

}  // namespace fusec
