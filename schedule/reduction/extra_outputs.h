// Splits off outputs of a row form with an element per reduced element that do not depend on a reduction. The first
// reduction loop stores them too, so that their operands are read once.
//
//   y[i, j] = x[i, j] + g[i, j];  sum over k of y[k, j]      ->   y[k, j] is stored in the loop over k
//   y[i, j] = exp(x[i, j] - max over k of x[k, j])           depends on a reduction
#pragma once

#include <vector>

#include "schedule/reduction/row_form.h"

namespace fusec {

// Moves these outputs to `extra_outputs`, over the rows and the axes of the first loop. If no other output has columns,
// the form then has none. Unchanged if the first loop does not run over the columns.
RowForm with_extra_outputs(const RowForm& form);

// Moves the outputs only if rows are then read once or kept: the remaining outputs have one element per row, and one
// loop makes all independent reductions. Otherwise returns the form unchanged.
RowForm extra_outputs_if_read_once(const RowForm& form);

// The expressions of the extra outputs.
std::vector<ExprId> roots_of_extra_outputs(const RowForm& form);

}  // namespace fusec
