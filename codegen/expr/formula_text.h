// Prints what a kernel computes as a person would write it, for the comment above it.
//
//   y[i, j] = x[j, i] * scale[i]
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"

namespace fusec {

// A line for each output. Conversions and roundings are left out. Nothing where a line would be long or there would be
// many.
std::vector<std::string> formula_lines(const Graph& graph, const Kernel& kernel);

}  // namespace fusec
