// How large an index expression is, written out. Chains of reshape and permute put expressions into one another that
// grow by a factor with each link; whoever substitutes asks here before it does.
#pragma once

#include <cstddef>

#include "ir/index_expr.h"

namespace fusec {

// Divisions, remainders, minima and maxima of the expression, each counted wherever it stands. Counting stops beyond
// `most`.
std::size_t index_size(const IndexExpr& e, std::size_t most);

// Terms of all its sums, counted likewise.
std::size_t term_count(const IndexExpr& e, std::size_t most);

}  // namespace fusec
