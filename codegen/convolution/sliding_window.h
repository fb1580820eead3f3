// Pooling and resampling of planes: several results of a column to a thread (schedule/convolution/sliding_window). All
// is written out, so that what results have in common stands there once.
//
//   const float* const x_at = x + (35 * row + max(j - 1, 0));
//   const float x_v = left ? x_at[35] : -inf;                     the first element of the second row
//   const float row_max_2 = nan_max(nan_max(x_v, ...), ...);      of which three results are made
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/convolution/sliding_window.h"

namespace fusec {

KernelSource emit_sliding_window(const SlidingWindow& windows, const Graph& graph);

}  // namespace fusec
