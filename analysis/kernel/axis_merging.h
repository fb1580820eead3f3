// Merges output axes that all accesses treat as one, so that a thread divides less to compute its indices:
//
//   y[i, j] = relu(x[i, j])   float32[64, 32]   ->   y[t] = relu(x[t])   t in 0 .. 2047
#pragma once

#include <span>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Returns the kernel without axes of extent 1, and with neighbouring output axes merged where that needs no more
// divisions than before.
Kernel merge_axes(const Kernel& kernel, const Graph& graph);

// --- single steps
Kernel drop_unit_axes(const Kernel& kernel);
// Merges the output axes at positions `first` and `first` + 1.
Kernel merge_pair(const Kernel& kernel, std::size_t first);
// Splits the last output axis into two: ceil(extent / width) groups and `width` lanes. `follow` holds expressions of
// `kernel` and receives their copies in the result.
Kernel split_last_axis(const Kernel& kernel, int width, std::span<ExprId> follow = {});
// Returns how many positions in the kernel (of loads, index values and outputs) contain a division or remainder.
std::size_t count_divisions(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
