// Marks values that another kernel quantizes, compares or rounds to integers. A 16-bit value within a kernel is usually
// not rounded. If a wider value is made of it and stored, and is quantized later, it must be rounded, or about one
// quantized value in a hundred differs from what the graph says. analysis/lowering/build_kernel rounds within a kernel.
//
//     norm: bfloat16 ──▶ cast: float32 ──▶ (stored) ──▶ div ──▶ round          norm is rounded before the cast
#pragma once

#include "ir/graph.h"

namespace fusec {

// Sets Node::feeds_quantization for nodes from which a path of floats wider than 16 bits leads to a node that
// quantizes.
void mark_feeds_quantization(Graph& graph);

// Returns whether the node turns floats into values that tolerate no error: quantized values, integers, comparisons, or
// the index of the maximum (the first of equal values).
bool quantizes(const Graph& graph, const Node& node);

}  // namespace fusec
