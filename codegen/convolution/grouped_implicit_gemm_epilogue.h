// What becomes of the sums of a block of emit_grouped_implicit_gemm: they go through the memory that held the places of
// its windows to threads that finish what lies together in the results.
//
//   channels last   a thread has eight channels of a result
//   turned          a thread has up to eight neighbours along the last axis, of a channel
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/convolution/grouped_implicit_gemm.h"

namespace fusec {

// Names of what a warp has summed, and of where.
struct GroupAccumulators {
  std::string type, sum;
  std::string group, part;         // the warp's, of the block
  std::string group0;              // the block's first
  std::vector<std::string> first;  // result of the block, along each axis
};

// `results` prints what stands behind the sums, of `windows.eights`.
void emit_grouped_epilogue(const GroupedImplicitGemm& windows, const GroupAccumulators& accumulators,
                           const Graph& graph, ExprEmitter& results);

}  // namespace fusec
