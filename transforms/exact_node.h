// Whether host and device compute bit-identical results for a node.
#pragma once

#include "ir/graph.h"

namespace fusec {

// True for data movement, integer arithmetic, and float operations that IEEE 754 rounds correctly. False for functions
// that the device approximates, for float sums and products over axes, whose order differs, and for casts of floats
// that the integer type cannot hold.
bool is_exact(const Graph& graph, const Node& node);

}  // namespace fusec
