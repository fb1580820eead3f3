// Parts of a concat that are rows: each is better kept by blocks of its own than read again by one loop over the whole
// result, with a choice for each element.
//
//   concat(rms_norm(x), rms_norm(y))     x's rows and y's, each stored in its place, side by side in one launch
//   concat(mean(x, 1), amax(x, 1))       one kernel, which reads x once for both
#pragma once

#include <vector>

#include "schedule/lowering/lower_group.h"

namespace fusec {

// Is that so of these kernels, which together make what the concat joins?
bool are_separate_rows(const std::vector<LoweredUnit>& parts, const Graph& graph);

}  // namespace fusec
