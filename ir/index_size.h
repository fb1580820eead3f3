// The size of an index expression when written out. Substitution through chains of reshape and permute multiplies the
// size with each link, so code that substitutes checks the size first.
#pragma once

#include <cstddef>

#include "ir/index_expr.h"

namespace fusec {

// The number of divisions, remainders, minima and maxima in the expression; repeated ones count each time.
// Counting stops beyond `most`.
std::size_t index_size(const IndexExpr& e, std::size_t most);

// The number of terms in all sums of the expression; terms of repeated sums count each time. Counting stops beyond
// `most`.
std::size_t term_count(const IndexExpr& e, std::size_t most);

}  // namespace fusec
