// An operand of attention as a TMA tensor. TMA copies boxes of 64 elements by some number of lines into shared memory,
// with the 128-byte swizzle.
//
//   k[b, j, h, e]     dimensions, innermost first: e, j, then the batch axes; a box of 64 e by 128 j is part of a tile
#pragma once

#include <optional>
#include <vector>

#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "schedule/attention/attention_form.h"

namespace fusec {

struct AttentionTensorMap {
  ValueId source = kNone;
  TensorMapBoxes boxes;          // the number of lines per box is set later
  std::vector<IndexExpr> batch;  // coordinates after element and line, over the form's batch axes
};

inline constexpr int kBoxColumns = 64, kBoxLineBytes = 128;

// The TMA boxes of an operand. `lines` are the axes that number its rows, `places` those that number a row's elements.
// Returns nullopt when the operand is no plain load or has strides that TMA does not support.
std::optional<AttentionTensorMap> boxes_of(const Attention& form, const Graph& graph, ExprId operand,
                                           const std::vector<std::uint32_t>& lines,
                                           const std::vector<std::uint32_t>& places);

}  // namespace fusec
