// Axes whose parts lie apart in memory become several, so that every access is linear and vectors along the innermost
// are visible:
//
//   y[b, t, 64 h + d] = x[b, h, t, d]     x[b, j // 64, t, j % 64]   ->   axes b, t, h, d:  x[b, h, t, d]
#pragma once

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// The kernel itself where nothing is gained.
Kernel split_axes(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
