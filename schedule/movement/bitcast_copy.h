// Elements of narrow floats that are moved and not computed with are moved as unsigned integers of their width: no
// instruction converts them, and NaNs keep their bits.
//
//   y[i, j] = x[j, i]                         float8 or float4: a load is 16 bytes, its elements are put in their
//   places y[i] = i < 3 ? 1.5 : x[i - 3]             float16: i < 3 ? 0x3e00 : x[i - 3] y[i] = x[i] > 0 ? x[i] : z[i]
//   not: what is asked of x needs its value
#pragma once

#include <optional>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

// The dtype as which each node of the pool is moved, none for what no output hands on. Nothing where something is
// computed, or what is moved is asked for its value.
using CopiedNodes = std::vector<std::optional<DType>>;
std::optional<CopiedNodes> find_copied(const Kernel& kernel);

// The kernel with such loads, constants and outputs as integers; as it is where something is computed, or nothing is
// narrow.
Kernel bitcast_copies(const Kernel& kernel);

}  // namespace fusec
