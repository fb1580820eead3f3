// Output axes that all tensors walk alike become one, so that fewer numbers are divided to find an element's place:
//
//   y[i, j] = relu(x[i, j])   float32[64, 32]   ->   y[t] = relu(x[t])   t in 0 .. 2047
#pragma once

#include <span>

#include "analysis/kernel/kernel.h"

namespace fusec {

// The kernel with neighbouring output axes merged wherever every access allows it: [i, j] of one flat tensor is [t].
Kernel merge_axes(const Kernel& kernel, const Graph& graph);

// --- steps of this kind, one by one
// Axes of extent 1 are not walked.
Kernel drop_unit_axes(const Kernel& kernel);
// Output axis `first` and the next one as a single axis.
Kernel merge_pair(const Kernel& kernel, std::size_t first);
// The last axis as groups of `width` neighbours: two axes, the group and the lane. Each of `follow`, expressions of the
// kernel, becomes what it is in the result.
Kernel split_last_axis(const Kernel& kernel, int width, std::span<ExprId> follow = {});
// How many divisions and remainders the accesses and positions of the kernel take.
std::size_t count_divisions(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
