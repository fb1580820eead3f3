// Strips of up to some hundred lines, which threads keep from loop to loop, by pieces of 4, 8 or 16 bytes: as wide ones
// as lines begin at and as leave warps for all multiprocessors. Where a warp has all lines of a strip nobody waits for
// another: lanes have whole columns, or hand one another what they have of them.
//
//   softmax of float16[4, 8, 64, 1024] over the 8       256 of 65536 to a warp, 8 to a lane, one line at a time
//                      [8, 32, 4096]    over the 32      64 of 4096 to a warp, 8 to a lane, four lines at a time
//                      [4096, 8, 300]... over the 300     32 to a block of 256 threads, 64 lines at a time
#pragma once

#include <optional>

#include "schedule/reduction/strided_reduction_layout.h"
#include "schedule/target/target.h"

namespace fusec {

// Nothing where lines begin between words, or where threads of single columns are predicted to do better.
std::optional<StridedReduction> register_resident_strip(const RowForm& form, const Graph& graph, const Target& target);

}  // namespace fusec
