// Values of different shapes that one kernel of rows can make: the larger one's shape is the kernel's space, the
// smaller one has a value for each of its rows.
//
//   exp[i, j] = exp(x[i, j] - max[i]),  sum[i] = sum_k exp[i, k]      space [i, j]; sum's dimension 0 is the space's 0
#pragma once

#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "analysis/lowering/inlining.h"

namespace fusec {

// For each dimension of `rows` the dimension of the space it runs along, kUnitDim for those of extent 1. Nothing where
// the formulas between the two do not tell, or `rows` has more in it than the space.
inline constexpr int kUnitDim = -1;
using DimsInSpace = std::vector<int>;
std::optional<DimsInSpace> dims_in_space(const Graph& graph, const Inlining& inlining, ValueId rows, ValueId space);

// Whether the kernel is rows throughout: every reduction depends on the same output axes and on nothing else, and every
// output runs along all of these and along all of the others or none.
bool is_rows_throughout(const Kernel& kernel);

}  // namespace fusec
