// What becomes of the sums of a block of group_windows: they go through the memory that held the places of its windows
// to threads that finish what lies together in the results.
//
//   channels last   a thread has eight channels of a result
//   turned          a thread has up to eight neighbours along the last axis, of a channel
#pragma once

#include <string>
#include <vector>

#include "analysis/group_windows.h"
#include "codegen/emit_expr.h"

namespace fusec {

// Names of what a warp has summed, and of where.
struct GroupSums {
  std::string type, sum;
  std::string group, part;         // the warp's, of the block
  std::string group0;              // the block's first
  std::vector<std::string> first;  // result of the block, along each axis
};

// `results` prints what stands behind the sums, of `windows.eights`.
void finish_groups(const GroupWindows& windows, const GroupSums& sums, const Graph& graph, ExprEmitter& results);

}  // namespace fusec
