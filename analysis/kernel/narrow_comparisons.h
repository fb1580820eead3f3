// Is a loaded number of 64 bits a place along some axis (one-hot vectors of classes, masks of tokens)? Places are ints,
// and the number is brought into their range once for all of them, so that each is compared by one instruction.
//
//   t[r] == k, k < 50257   ->   (int)min(max(t[r], -1), 50257) == k
#pragma once

#include "ir/expr.h"

namespace fusec {

// The comparison of such operands; kNoExpr for any other.
ExprId narrow_comparison(ExprPool& pool, ExprOp op, ExprId left, ExprId right);

}  // namespace fusec
