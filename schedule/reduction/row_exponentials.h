// Exponentials of a row that nothing but their own sum divides are powers of two, an operation less for each:
//
//   e = exp(x - max), y = e / sum(e)   ->   e = 2^(x * c - max * c), c = log2(e)
//
// The product of max and c is rounded, by which all exponentials are too large, or too small, by one factor; their sum
// is so as well. Of a maximum beyond 2^30, where neighbouring floats are 64 apart and more, differences are 0 or so
// large that their exponential is 0: with c = 1 their products are exact.
#pragma once

#include <vector>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/kernel.h"

namespace fusec {

// Is it the maximum of a row, or that and what lies beside the row (schedule/reduction/row_folding)?
bool is_maximum_of_row(const ExprPool& pool, ExprId id);

// The kernel's exponentials that may be so written, where divisions are products with reciprocals
// (schedule/reduction/row_division).
std::vector<bool> shared_exponentials(const Kernel& kernel);

// Such an exponential, in the pool into which `copied` tells what it is made of.
ExprId shared_power_of_two(const ExprPool& from, ExprId exponential, ExprPool& to, const ExprCopier::Copied& copied);

// Is it one, so that its exponent is no greater than the rounding of max * c makes it?
bool is_shared_power_of_two(const ExprPool& pool, const ExprNode& n);

}  // namespace fusec
