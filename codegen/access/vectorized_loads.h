// Splits a pointwise kernel's last axis into vectors of `width` lanes per thread, and classifies its loads.
//
//   y[t] = x[t] + b[t / 512] + z[3 t]   ->   y[8 g + e]:   x a vector, b one element, z one element per lane
#pragma once

#include <vector>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

struct VectorizedLoads {
  Kernel kernel;                     // its last axis is the lane; for width 1, the original kernel
  std::vector<ExprId> vectors = {};  // loads that are one vector access
  std::vector<ExprId> uniform = {};  // loads of one element for all lanes
  std::vector<ExprId> apart = {};    // loads of one element per lane
};
VectorizedLoads vectorize_loads(const Kernel& merged, const Graph& graph, int width);

// Memory sectors per point in sampled warps, without small tables.
double sectors_of_loads(const VectorizedLoads& loads, const Graph& graph, int width);
// Accesses of at most 16 bytes, per thread and per point.
double accesses_of_loads(const VectorizedLoads& loads, int width);

}  // namespace fusec
