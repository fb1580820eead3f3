// Whether host and device give a node the very same bits.
#pragma once

#include "ir/graph.h"

namespace fusec {

// Movement, integers, and the operations that IEEE rounds correctly; not functions that the device approximates, sums
// and products over axes in an order of their own, or floats that an integer cannot hold.
bool is_exact(const Graph& graph, const Node& node);

}  // namespace fusec
