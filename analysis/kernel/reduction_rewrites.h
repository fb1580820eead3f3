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

// Returns the reduction that `id` is, or whose sum `id` divides by a constant (a mean). kNoExpr if `id` is neither, or
// the reduction is argmax or argmin.
ExprId reduction_at(const ExprPool& pool, ExprId id);

// Joins a reduction whose body is a reduction of the same kind into one over the axes of both, unless the inner one
// contains another reduction.
void join_nested_reductions(Kernel& kernel);

// Returns the body of the reduction at index `place` of its only axis.
ExprId reduction_operand_at(ExprPool& pool, const ExprNode& reduction, const IndexExpr& place);

// Replaces each reduction, inner ones first, by what `rewritten` returns; kNoExpr keeps it. Returns whether any was
// replaced.
bool rewrite_reductions(Kernel& kernel, const std::function<ExprId(const ExprNode& reduction)>& rewritten);

}  // namespace fusec
