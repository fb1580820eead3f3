// How the values of a model's symbols follow from the shapes of its inputs: printed into the host part, run by the
// devices, and asked by the reader whether every symbol can be found.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// symbol = (extent of `input`'s `dimension` - rest) / coefficient, exactly; `rest` has only symbols solved before.
struct SymbolSolution {
  std::uint32_t symbol;
  std::uint32_t input;  // position in Graph::inputs
  std::uint32_t dimension;
  std::int64_t coefficient;
  IndexExpr rest;
};

// In an order in which they can be computed. A symbol that is not among them is determined by no input.
std::vector<SymbolSolution> symbol_solutions(const Graph& graph);

// The values, in symbol order, for inputs whose extents are given (by position in Graph::inputs, then dimension).
// Symbols without a solution get their hint. Throws Error(kInput) when an extent contradicts its dimension, another
// extent or a bound, naming the input.
std::vector<std::int64_t> solve_symbols(
    const Graph& graph, const std::function<std::int64_t(std::size_t input, std::size_t dimension)>& extent);

}  // namespace fusec
