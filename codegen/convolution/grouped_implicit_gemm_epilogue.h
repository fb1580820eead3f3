// Emits the epilogue of emit_grouped_implicit_gemm. The accumulators go through the shared memory of the input tile to
// threads that finish contiguous results.
//
//   NHWC   a thread has eight channels of one result position
//   NCHW   a thread has up to eight neighbours along the last axis, of one channel
#pragma once

#include <string>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "schedule/convolution/grouped_implicit_gemm.h"

namespace fusec {

// Names of a warp's accumulators and of its place in the block.
struct GroupAccumulators {
  std::string type, accumulator;
  std::string group, part;         // the warp's, within the block
  std::string group0;              // the block's first group
  std::vector<std::string> first;  // by axis: the block's first result
};

// `results` prints the epilogue, over `form.epilogue`.
void emit_grouped_epilogue(const GroupedImplicitGemm& form, const GroupAccumulators& accumulators, const Graph& graph,
                           ExprEmitter& results);

}  // namespace fusec
