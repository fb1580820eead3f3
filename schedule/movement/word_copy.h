// What is moved and not computed with, and always by several neighbours of the last axis together, is moved as elements
// so many times as wide: small extents, and elements of 4 bits, become what tiles, vectors and windows are made for.
//
//   y[j, i, c] = x[i, j, c], int8[n, m, 8]       y'[j, i] = x'[i, j], uint64[n, m]
//   y[i, j] = x[i, (j + 8) % 64], int4           y'[i, j] = x'[i, (j + 1) % 8], uint32
//   y[i, j] = x[i, (j + 3) % 64], int4           not: the first three of a word are another one's
#pragma once

#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

struct WordCopy {
  Kernel kernel;                // of values of `graph`, and of no nodes
  Graph graph;                  // the tensors that it loads and stores, those that are moved as words
  std::vector<ValueId> values;  // what each value of `graph` is in the model
};

// The widest elements, of up to `widest` bits, as which `kernel` can be moved; nothing where that is none wider.
std::optional<WordCopy> widen_copies(const Kernel& kernel, const Graph& graph, int widest);

}  // namespace fusec
