// Vectors of lines shorter than a sector of memory, which go on elsewhere in a load than in the results: neighbouring
// threads take what lies side by side there, so that a warp asks for whole sectors on both sides and nothing goes
// through shared memory.
//
//   patches of 16x16 bytes, y[p, c, r, v] = x[c, r, 16 p + v]     threads by p, c, r:          half of each sector of x
//                                                                 by p / 2, c, r, p % 2:       whole ones
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// The kernel, whose threads have `width` neighbours each, with its points in that order; nothing where no line goes on
// so, or results would be stored in parts of sectors.
std::optional<Kernel> interchange_short_lines(const Kernel& kernel, const Graph& graph, int width);

}  // namespace fusec
