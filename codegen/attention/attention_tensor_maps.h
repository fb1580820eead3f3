// A factor of attention as TMA sees it: a tensor of which boxes of 64 places and so many lines are copied into shared
// memory, swizzled over 128 bytes.
//
//   k[b, j, h, e]     innermost e, then j, then what is left: a box of 64 along e and 128 along j is a piece of a tile
#pragma once

#include <optional>
#include <vector>

#include "codegen/expr/kernel_source.h"
#include "ir/graph.h"
#include "schedule/attention/attention_form.h"

namespace fusec {

struct AttentionTensorMap {
  ValueId source = kNone;
  TensorMapBoxes boxes;          // but for the lines of a box
  std::vector<IndexExpr> batch;  // coordinates behind place and line, over the form's batch axes
};

inline constexpr int kBoxPlaces = 64, kBoxLineBytes = 128;

// Nothing where the factor is no plain load, or its elements do not lie as TMA can copy them.
std::optional<AttentionTensorMap> boxes_of(const Attention& form, const Graph& graph, ExprId operand,
                                           const std::vector<std::uint32_t>& lines,
                                           const std::vector<std::uint32_t>& places);

}  // namespace fusec
