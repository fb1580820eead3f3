// Values of different shapes that one kernel of rows can make. The larger value's shape is the kernel's iteration
// space; the smaller one has one element per row of it.
//
//   exp[i, j] = exp(x[i, j] - max[i]),  sum[i] = sum_k exp[i, k]      space [i, j]; sum's dimension 0 is the space's 0
#pragma once

#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "analysis/lowering/inlining.h"

namespace fusec {

// Returns, for each dimension of `rows`, the dimension of the space that it runs along, kUnitDim for extent 1. Returns
// nothing if the formulas between the two do not show this, or if `rows` has a dimension that the space lacks.
inline constexpr int kUnitDim = -1;
using DimsInSpace = std::vector<int>;
std::optional<DimsInSpace> dims_in_space(const Graph& graph, const Inlining& inlining, ValueId rows, ValueId space);

// Returns whether the kernel is rows throughout: all reductions depend on the same output axes and on no other axes,
// and every output runs along all output axes or along exactly those.
bool is_rows_throughout(const Kernel& kernel);

}  // namespace fusec
