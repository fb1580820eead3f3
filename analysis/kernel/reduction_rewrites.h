// Reductions taken in pieces: what is combined is the same, in another order.
//
//   max over j <= n of f(j)        max(max over j < n of f(j), f(n))
//   sum over k < 2n of f(k)        sum over k < n of (f(k) + f(n + k))
//   sum over j of sum over k of f  sum over j, k of f
#pragma once

#include <functional>
#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// What combines two results; nothing where a result says which element it is.
std::optional<ExprOp> combining_op(Reduction reduction);

// The reduction that an expression is, of a kind that combines; a sum may stand over a constant (a mean). Else kNoExpr.
ExprId reduction_at(const ExprPool& pool, ExprId id);

// A reduction of reductions of its kind that hold no further one becomes one over the axes of both.
void join_nested_reductions(Kernel& kernel);

// What is reduced, at `place` of the reduction's only axis.
ExprId reduction_operand_at(ExprPool& pool, const ExprNode& reduction, const IndexExpr& place);

// Each reduction, the inner ones first, becomes what `rewritten` makes of it, kNoExpr: it stays. False where all do.
bool rewrite_reductions(Kernel& kernel, const std::function<ExprId(const ExprNode& reduction)>& rewritten);

}  // namespace fusec
