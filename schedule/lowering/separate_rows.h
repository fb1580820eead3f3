// Parts of a concat that are rows. If each part fits one block's registers or shared memory, separate blocks per part
// read it once; one loop over the whole result would read it again and select for each element.
//
//   concat(rms_norm(x), rms_norm(y))     rows of x and rows of y, each stored in its place, in one launch
//   concat(mean(x, 1), amax(x, 1))       one kernel, which reads x once for both
#pragma once

#include <vector>

#include "schedule/lowering/lower_group.h"

namespace fusec {

// Returns whether these kernels, which together make the concat's operands, are better as separate rows.
bool are_separate_rows(const std::vector<LoweredUnit>& parts, const Graph& graph);

}  // namespace fusec
