// Finds nodes that can run once before the first launch because they depend on constants only. The values of the
// constants need not be known at compile time.
//
//   t = permute(w)       w is a constant given at run time: t and s can run early
//   s = mul(t, scale)
//   y = matmul(x, s)     x is an input: neither y nor its consumers can run early
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace fusec {

bool has_symbols(const Shape& shape);
bool has_symbols(const Attributes& attributes);

// Returns, by NodeId, 1 for each node that can run once, before the first launch. These nodes cannot:
// - non-deterministic nodes, nodes marked "fuse": false, external launchers, collectives and tuples
// - nodes with symbols in shapes or attributes, because the next launch may bind other values
// - nodes that define a graph output, because each launch writes the caller's buffer
std::vector<std::uint8_t> find_constant_nodes(const Graph& graph);

// Returns whether `v` is a constant or the result of such a node. Visits only what `v` depends on; answers false if
// more than 64 values are above it.
bool is_made_of_constants(const Graph& graph, ValueId v);

}  // namespace fusec
