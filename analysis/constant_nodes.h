// Nodes that could run before any launch: they depend on constants alone, whose values need not be known yet.
//
//   t = permute(w)       w a constant given at run time: t and s are such nodes
//   s = mul(t, scale)
//   y = matmul(x, s)     x an input: y is none, nor is what depends on y
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace fusec {

bool has_symbols(const Shape& shape);
bool has_symbols(const Attributes& attributes);

// By node. Not what gives other results each time, what the user keeps apart, what somebody else's code computes, what
// a symbol has a say in (the next launch may have another value for it), and not what an output of the model shows: the
// caller's buffer is written at every launch.
std::vector<std::uint8_t> find_constant_nodes(const Graph& graph);

// The same of one value, constants themselves included, without a look at the whole graph: no where too much stands
// above it.
bool is_made_of_constants(const Graph& graph, ValueId v);

}  // namespace fusec
