// Rewrites reductions into others that combine the same elements in another order.
//
//   max over j <= n of f(j)        max(max over j < n of f(j), f(n))
//   sum over k < 2n of f(k)        sum over k < n of (f(k) + f(n + k))
//   sum over j of sum over k of f  sum over j, k of f
#pragma once

#include <functional>
#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Returns the operation that combines two partial results; nothing for argmax and argmin.
std::optional<ExprOp> combining_op(Reduction reduction);

// Returns `id` if it is a reduction. If `id` is a mean (a sum divided by a constant), returns the sum. Otherwise, and
// for argmax and argmin, returns kNoExpr.
ExprId reduction_at(const ExprPool& pool, ExprId id);

// Replaces nested reductions of one kind, such as sum_i sum_j x[i, j], by one reduction over the axes of both. The
// inner reduction must not contain a third one.
void join_nested_reductions(Kernel& kernel);

// Returns the body of the reduction at index `place` of its only axis.
ExprId reduction_operand_at(ExprPool& pool, const ExprNode& reduction, const IndexExpr& place);

// Replaces each reduction, inner ones first, by what `rewritten` returns; kNoExpr keeps it. Returns whether any was
// replaced.
bool rewrite_reductions(Kernel& kernel, const std::function<ExprId(const ExprNode& reduction)>& rewritten);

}  // namespace fusec
