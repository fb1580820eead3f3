// Scratch memory for rows shared by independent blocks. Blocks store partial results of a reduction; the kernel of the
// next stage combines them.
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "schedule/reduction/row_form.h"

namespace fusec {

// Adds the scratch memory for `count` partial results, and returns its name.
std::string row_partials(KernelWriter& writer, const RowForm& form, const ExprEmitter::Accumulator& accumulator,
                         const IndexExpr& count);
// Adds the scratch memory for the element count of each partial result.
std::string counts_of_partials(KernelWriter& writer, const RowForm& form, const IndexExpr& count);

// The number of blocks per group of rows, for rows with a length known only at launch. Each block gets at least
// `fewest` elements (or the number it has at the hints, if that is less). The total over `groups` stays within that at
// the hints. The result is at most `chunks`, which is its value at the hints.
IndexExpr chunks_of_launch(int chunks, const IndexExpr& length, std::int64_t fewest, const IndexExpr& groups,
                           const Bounds& bounds);

// The prelude types that accumulate moments (sum and squared deviations) of this type in one pass
// (codegen/prelude/online_accumulators.cu). The shifted form takes `places` elements at a time, each with its own
// accumulator. Elements are summed times 2^-scale.
std::string running_moments(const std::string& type, int scale);
std::string shifted_moments(const std::string& type, int places, int scale);
// Texts of a one-pass accumulator: the first result, the second with the value of its operand as {}, and the element
// for which that operand is computed (the shift of exponentials, the mean).
struct PassResults {
  std::string first, second, element;
};
PassResults results_of_exponentials(const std::string& running);
// `about`: the value that means are relative to, "" for 0.
PassResults results_of_moments(const std::string& moments, const std::string& about = "");

// The divisor that makes the scaled sum a mean.
std::string divisor_of_sum(const std::string& count, const std::string& type, int scale);

}  // namespace fusec
