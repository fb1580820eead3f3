// How large an index expression is, written out. Chains of reshape and permute put expressions into one another that
// grow by a factor with each link; whoever substitutes asks here before it does.
#pragma once

#include <cstddef>

#include "ir/index_expr.h"

namespace fusec {

// The number of divisions, remainders, minima and maxima in the expression; one that stands twice counts twice.
// Counting stops beyond `most`.
std::size_t index_size(const IndexExpr& e, std::size_t most);

// The number of terms in all sums of the expression; a sum that stands twice counts twice. Counting stops beyond
// `most`.
std::size_t term_count(const IndexExpr& e, std::size_t most);

}  // namespace fusec
