// Kernels whose threads make `width` neighbouring points each, a thread's lanes, and what its loads are then.
//
//   y[t] = x[t] + b[t / 512] + z[3 t]   ->   y[8 g + e]:   of x a vector, of b one element, of z an element a lane
#pragma once

#include <vector>

#include "analysis/axis_merging.h"
#include "analysis/kernel.h"
#include "ir/graph.h"

namespace fusec {

struct LoadsOfLanes {
  Kernel kernel;  // whose last axis is the lane; where the width is 1, the kernel as it was
  std::vector<ExprId> vectors = {}, same = {}, apart = {};  // one access for all lanes, one element for all, one a lane
};
LoadsOfLanes loads_of_lanes(const Kernel& merged, const Graph& graph, int width);

// Sectors for a point that they ask for, as some warps do; small tables apart.
double sectors_of_loads(const LoadsOfLanes& loads, const Graph& graph, int width);
// Accesses of a thread, of 16 bytes or less, for a point.
double accesses_of_loads(const LoadsOfLanes& loads, int width);

}  // namespace fusec
