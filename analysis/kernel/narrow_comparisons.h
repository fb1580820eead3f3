// Compares a loaded 64-bit integer with an index (one-hot vectors of classes, masks of tokens) in 32 bits. The integer
// is clamped once to just outside the index's range, so that each comparison takes one instruction.
//
//   t[r] == k, k < 50257   ->   (int)min(max(t[r], -1), 50257) == k
#pragma once

#include "ir/expr.h"

namespace fusec {

// Returns the narrowed comparison; kNoExpr if the operands are not of this kind.
ExprId narrow_comparison(ExprPool& pool, ExprOp op, ExprId left, ExprId right);

}  // namespace fusec
