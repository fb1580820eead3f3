// The values of a model's symbols at run time, computed from the extents of its inputs as ir/symbol_solution.h says.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// The values in symbol order. `extent` returns the extent of a dimension of an input, by position in Graph::inputs.
// Symbols that no input determines get their hint. Throws Error(kInput) that names the input if an extent contradicts
// its dimension, another extent or a bound.
std::vector<std::int64_t> symbol_values(
    const Graph& graph, const std::function<std::int64_t(std::size_t input, std::size_t dimension)>& extent);

}  // namespace fusec
