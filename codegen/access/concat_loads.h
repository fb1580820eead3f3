// An element of one of several tensors, as a concat joins them: one vector's words come from one of them, so that a row
// has no more vectors to load, and to keep, than elements.
//
//   i < 640 ? x[i * 1024 + j] : y[(i - 640) * 1024 + j]
//     ->  const Words<4> concat_w = i < 640 ? load_words<4>(x + ...) : load_words<4>(y + ...);
#pragma once

#include <string>

#include "codegen/expr/emit_expr.h"
#include "ir/graph.h"

namespace fusec {

// Is it such an element, of which a vector along the axis lies in one tensor, at a multiple of the width?
bool is_concat_vector(const Graph& graph, const ExprPool& pool, ExprId id, std::uint32_t lane_axis, int width);

// Of a load, or of each of those that are joined.
DType loaded_dtype(const ExprPool& pool, ExprId id);

// The words of its vector; all other axes are bound.
std::string concat_words(ExprEmitter& emitter, ExprId id, std::uint32_t lane_axis, int width);

}  // namespace fusec
