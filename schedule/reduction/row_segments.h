// Rows of which segments are reduced as well, behind reductions of the whole row: codes with a scale for every 64
// columns, norms of the heads of a row that was normalized.
//
//   norm[i, j] = x[i, j] * r[i],  r[i] = f(sum over k of x[i, k]^2)
//   most[i, b] = max over c < 64 of |norm[i, 64 b + c]|,  code[i, j] = norm[i, j] / most[i, j // 64]
//     ->  rows i, columns j; most is at column j the maximum of |norm[i, j]| over the 64 columns of j's segment
//
// So written, a reduction of a segment goes over an axis on which its operand does not depend: threads that have
// neighbouring columns at hand combine what they have of them.
#pragma once

#include <optional>

#include "schedule/reduction/row_form.h"

namespace fusec {

// Of a kernel whose reductions go over one axis each, which share it where their extents are equal. Nothing where no
// segments are reduced, or not so that neighbouring lanes have them.
std::optional<RowForm> segmented_rows(const Kernel& kernel, const Graph& graph);

// Does the output have an element for each segment of a row, rather than for each column?
bool is_of_segments(const RowForm& form, const KernelOutput& output);

}  // namespace fusec
