// Kernels whose threads make `width` neighbouring points each, a thread's lanes, and what its loads are then.
//
//   y[t] = x[t] + b[t / 512] + z[3 t]   ->   y[8 g + e]:   of x a vector, of b one element, of z an element a lane
#pragma once

#include <vector>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

struct VectorizedLoads {
  Kernel kernel;  // whose last axis is the lane; where the width is 1, the kernel as it was
  std::vector<ExprId> vectors = {}, uniform = {},
                      apart = {};  // one access for all lanes, one element for all, one a lane
};
VectorizedLoads vectorize_loads(const Kernel& merged, const Graph& graph, int width);

// Sectors for a point that they ask for, as some warps do; small tables apart.
double sectors_of_loads(const VectorizedLoads& loads, const Graph& graph, int width);
// Accesses of a thread, of 16 bytes or less, for a point.
double accesses_of_loads(const VectorizedLoads& loads, int width);

}  // namespace fusec
