// How a launch computes the values of a model's symbols: each is solved from one dimension of one input.
//
//   x: [b, 2*tokens+1]     b = x.shape[0];  tokens = (x.shape[1] - 1) / 2
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// dimension = coefficient * symbol + rest. `coefficient` and `rest` hold only symbols that earlier steps solved;
// `coefficient` is never 0 within the bounds.
struct SymbolStep {
  std::uint32_t symbol;
  std::uint32_t input;      // position in Graph::inputs
  std::uint32_t dimension;  // dimension of that input
  Dim coefficient, rest;
};

struct SymbolSolution {
  std::vector<SymbolStep> steps;            // in the order in which they can be taken
  std::vector<std::uint32_t> undetermined;  // symbols that no input determines
};

// A symbol that is a whole dimension is taken from the first such dimension; all others from linear expressions.
SymbolSolution solve_symbols(const Graph& graph);

}  // namespace fusec
