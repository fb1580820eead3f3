// The values of a model's symbols at run time, from the extents of its inputs; how they follow is ir/symbol_solution.h.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// In symbol order, for inputs whose extents are given (by position in Graph::inputs, then dimension). Symbols that no
// input determines get their hint. Throws Error(kInput) when an extent contradicts its dimension, another extent or a
// bound, naming the input.
std::vector<std::int64_t> symbol_values(
    const Graph& graph, const std::function<std::int64_t(std::size_t input, std::size_t dimension)>& extent);

}  // namespace fusec
