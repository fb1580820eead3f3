// Where blocks that know nothing of one another share rows: the scratch memory in which they leave partial results of a
// reduction, which the kernel of the next stage combines.
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// Its name, with room for so many.
std::string row_partials(KernelWriter& writer, const RowForm& form, const ExprEmitter::Accumulator& accumulator,
                         const IndexExpr& count);
// Beside those of the reductions, of how many elements each is.
std::string counts_of_partials(KernelWriter& writer, const RowForm& form, const IndexExpr& count);

// How many blocks share each of so many `groups` of rows of a length that only a launch knows: as many as have `fewest`
// elements each, or what they have at the hints if that is less, and no more in all than are expected; at most
// `chunks`, which they are at the hints.
IndexExpr chunks_of_launch(int chunks, const IndexExpr& length, std::int64_t fewest, const IndexExpr& groups,
                           const Bounds& bounds);

// What sums up moments of values of this type in one pass (codegen/prelude/rows.cu), of elements that come so many at a
// time for places of their own. Sums are those of elements times 2^-scale.
std::string running_moments(const std::string& type, int scale);
std::string shifted_moments(const std::string& type, int places, int scale);
// What such a sum is divided by for a mean.
std::string divisor_of_sum(const std::string& count, const std::string& type, int scale);

}  // namespace fusec
