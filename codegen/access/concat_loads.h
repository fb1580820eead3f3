// Loads an element of a concatenated tensor. If a vector always lies in one of the operands, the whole vector comes
// from one load with a selected address, so that a row needs no more vectors than elements.
//
//   i < 640 ? x[i * 1024 + j] : y[(i - 640) * 1024 + j]
//     ->  const Words<4> concat_w = i < 640 ? load_words<4>(x + ...) : load_words<4>(y + ...);
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "ir/graph.h"

namespace fusec {

// True if `id` selects among loads, and each vector along the axis lies in one tensor, aligned to the width.
bool is_concat_vector(const Graph& graph, const ExprPool& pool, ExprId id, std::uint32_t lane_axis, int width);

// The dtype of a load, or of the concatenated loads.
DType loaded_dtype(const ExprPool& pool, ExprId id);

// The text of its vector of words. All axes other than the lane axis must be bound.
std::string concat_words(ExprEmitter& emitter, ExprId id, std::uint32_t lane_axis, int width);

}  // namespace fusec
