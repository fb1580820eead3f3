// Merges two reductions of a row, the second of which depends on the first, into one pass. A thread accumulates
// relative to its own intermediate first result. When that changes, it rescales what it has accumulated.
//
//   max(x), sum(exp(x - max))   running maximum and rescaled sum (online softmax)
//   sum(x), sum((x - mean)^2)   count, mean and squared deviations (Chan et al. 1979); the first may be a sum of x
//                               times a power of two below 1 (ir/ops/mean.h)
//
// Blocks that store partial results (RowLayout::chunks) store those of both reductions, so the row takes two launches
// instead of three. Column reductions and strided rows use one pass, too.
#pragma once

#include <cstdint>
#include <optional>

#include "schedule/reduction/row_form.h"

namespace fusec {

struct RowOnePass {
  enum class Kind : std::uint8_t { kExponentials, kMoments };
  Kind kind;
  ExprId first, second;   // reductions
  ExprId element;         // the element expression of both
  ExprId mean = kNoExpr;  // of moments: computed from `first`
  int scale = 0;          // of moments: `first` sums element * 2^-scale
};

// Nothing if the form's reductions are not such a pair.
std::optional<RowOnePass> row_one_pass(const RowForm& form);

}  // namespace fusec
