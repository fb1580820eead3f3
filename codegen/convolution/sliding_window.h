// Emits pooling and resampling of NCHW planes (schedule/convolution/sliding_window). Each thread computes several
// results of one column. The loops are fully unrolled in the text, so that values shared by results occur once.
//
//   const float* const x_at = x + (35 * row + max(j - 1, 0));
//   const float x_v = left ? x_at[35] : -inf;                     first element of the second row
//   const float row_max_2 = nan_max(nan_max(x_v, ...), ...);      shared by three results
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/convolution/sliding_window.h"

namespace fusec {

KernelSource emit_sliding_window(const SlidingWindow& windows, const Graph& graph);

}  // namespace fusec
