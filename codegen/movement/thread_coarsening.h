// Axes whose equal parts read the same: a thread makes one place of each part, so that what several of them need is
// loaded once, and the same is computed once. A half of a head is rotated with the other half, tables are the same for
// all heads, and results may say the same again and again.
//
//   y[i, j] = x[i, j] * c[i, j] + x[i, (j + 64) % 128] * s[i, j]   ->   axes i, j < 64: y[i, j] and y[i, j + 64],
//                                                                       x[i, j] and x[i, j + 64] for both
//   y[h, t] = x[h, t] * c[t], h < 32                               ->   axes h < 8, t: four heads, c[t] once
//   y[i, 3, j] = relu(x[i, j])                                     ->   axes i, j: three stores
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/target/target.h"

namespace fusec {

struct ThreadCoarsening {
  Kernel kernel;                     // with an output of each for each part
  int width = 1;                     // neighbours that a thread makes of each
  double sectors = 0, accesses = 0;  // of loads, for a point of the given kernel
  bool in_vectors = false;           // all loads are of vectors, or of what is the same for all neighbours
};

// Nothing where parts have nothing in common, or where not all of them can be stored in vectors.
std::optional<ThreadCoarsening> coarsen_threads(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
