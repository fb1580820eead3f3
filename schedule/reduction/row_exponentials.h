// Replaces exponentials of a row that are only divided by their own sum with powers of two, which saves an operation
// per element:
//
//   e = exp(x - max), y = e / sum(e)   ->   e = 2^(x * c - max * c), c = log2(e)
//
// The rounding of max * c scales all exponentials, and so their sum, by one factor, which cancels. If |max| exceeds
// 2^30, neighbouring floats are at least 64 apart, and each exponential is 1 or 0. The code then uses c = 1, with exact
// products.
#pragma once

#include <vector>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/kernel.h"

namespace fusec {

// True for the maximum of a row, also combined with values outside of the row (schedule/reduction/row_folding).
bool is_maximum_of_row(const ExprPool& pool, ExprId id);

// By node: the exponentials that may be replaced, given that divisions are already multiplications by reciprocals
// (schedule/reduction/row_division).
std::vector<bool> shared_exponentials(const Kernel& kernel);

// Builds the replacement in pool `to`; `copied` maps its operands.
ExprId shared_power_of_two(const ExprPool& from, ExprId exponential, ExprPool& to, const ExprCopier::Copied& copied);

// True for a replacement. Its exponent exceeds 0 by no more than the rounding of max * c.
bool is_shared_power_of_two(const ExprPool& pool, const ExprNode& n);

}  // namespace fusec
