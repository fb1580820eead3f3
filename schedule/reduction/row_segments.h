// Recognizes rows with reductions of segments that depend on reductions of the whole row: quantization with a scale per
// 64 columns, norms of the heads of a normalized row.
//
//   norm[i, j] = x[i, j] * r[i],  r[i] = f(sum over k of x[i, k]^2)
//   most[i, b] = max over c < 64 of |norm[i, 64 b + c]|,  code[i, j] = norm[i, j] / most[i, j // 64]
//     ->  rows i, columns j; most is at column j the maximum of |norm[i, j]| over the 64 columns of j's segment
//
// In this form a segment reduction runs over an axis on which its operand does not depend. The threads that hold
// neighbouring columns combine their values.
#pragma once

#include <optional>

#include "schedule/reduction/row_form.h"

namespace fusec {

// For a kernel whose reductions run over one axis each, shared if extents are equal. Nothing if there are no segment
// reductions, or if neighbouring lanes do not hold a segment.
std::optional<RowForm> segmented_rows(const Kernel& kernel, const Graph& graph);

// True if the output has one element per segment, not one per column.
bool is_of_segments(const RowForm& form, const KernelOutput& output);

}  // namespace fusec
