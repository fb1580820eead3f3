// How a launch learns the values of a model's symbols: each one is solved from one dimension of one input.
//
//   x: [b, 2*tokens+1]     b = x.shape[0];  tokens = (x.shape[1] - 1) / 2
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// dimension = coefficient * symbol + rest, with coefficient and rest in symbols that earlier steps solved, and the
// coefficient never 0 within the bounds.
struct SymbolStep {
  std::uint32_t symbol;
  std::uint32_t input;      // position in Graph::inputs
  std::uint32_t dimension;  // of that input
  Dim coefficient, rest;
};

struct SymbolSolution {
  std::vector<SymbolStep> steps;            // in the order in which they can be taken
  std::vector<std::uint32_t> undetermined;  // symbols that no input determines
};

// A symbol that is a dimension by itself is taken from the first such one; only then linear expressions are looked at.
SymbolSolution solve_symbols(const Graph& graph);

}  // namespace fusec
