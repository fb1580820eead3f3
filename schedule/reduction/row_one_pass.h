// Two reductions of a row of which the second needs the first, and which one pass over the row makes all the same:
// what a thread has summed up below another first result than the row's becomes what it would have been below that.
//
//   max(x), sum(exp(x - max))   the greatest so far and the sum below it, which shrinks where that grows
//   sum(x), sum((x - mean)^2)   how many there were, their mean and squares of differences to it (Chan et al. 1979);
//                               the first may be a sum of x times a power of two below 1 (ir/ops/mean.h)
//
// Blocks that leave partial results (RowLayout::chunks) leave those of both reductions, so that the row takes two
// launches and not three. Rows of neighbouring columns and strided rows are reduced in one pass, too.
#pragma once

#include <cstdint>
#include <optional>

#include "schedule/reduction/row_form.h"

namespace fusec {

struct RowOnePass {
  enum class Kind : std::uint8_t { kExponentials, kMoments };
  Kind kind;
  ExprId first, second;   // reductions
  ExprId element;         // of both
  ExprId mean = kNoExpr;  // of moments: what is made of the first
  int scale = 0;          // of moments: the first sums up element * 2^-scale
};

// Nothing where the form's reductions are others.
std::optional<RowOnePass> row_one_pass(const RowForm& form);

}  // namespace fusec
