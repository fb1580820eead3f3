// Outputs of a form of rows that have an element for each that is reduced and wait for none of the reductions: the loop
// that reduces first stores them as well, so that what they are made of is read once.
//
//   y[i, j] = x[i, j] + g[i, j];  sum over k of y[k, j]      ->   y[k, j] beside the loop over k
//   y[i, j] = exp(x[i, j] - max over k of x[k, j])           waits
#pragma once

#include <vector>

#include "schedule/reduction/row_form.h"

namespace fusec {

// The form with such outputs in `beside`, over the rows and the axes of its first loop, and not among the kernel's.
// Where no others run along the columns, it has none. Unchanged where the first loop does not go over the columns.
RowForm with_extra_outputs(const RowForm& form);

// The form so parted where nothing but results of rows is left and where its reductions that wait for no others are
// made by one loop: rows are read for that loop alone, or kept. Else as it was.
RowForm extra_outputs_if_read_once(const RowForm& form);

// What the outputs are made of.
std::vector<ExprId> roots_of_extra_outputs(const RowForm& form);

}  // namespace fusec
