// Plans strided reductions over strips of up to a few hundred lines, which threads keep between loops. Accesses are 4,
// 8 or 16 bytes: as wide as the lines' alignment allows and as leaves warps for all multiprocessors. If one warp has
// all lines of a strip, there is no block barrier: each lane has whole columns, or lanes exchange their parts.
//
//   softmax of float16[4, 8, 64, 1024] over the 8       256 of 65536 to a warp, 8 to a lane, one line at a time
//                      [8, 32, 4096]    over the 32      64 of 4096 to a warp, 8 to a lane, four lines at a time
//                      [4096, 8, 300]... over the 300     32 to a block of 256 threads, 64 lines at a time
#pragma once

#include <optional>

#include "schedule/reduction/strided_reduction_layout.h"
#include "schedule/target/target.h"

namespace fusec {

// Nothing if lines are not word-aligned, or if one thread per column is predicted to be faster.
std::optional<StridedReduction> register_resident_strip(const RowForm& form, const Graph& graph, const Target& target);

}  // namespace fusec
