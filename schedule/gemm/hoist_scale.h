// Sums of products of int8 or float8 that are scaled, or only converted, on their way: what scales all of the depth
// alike waits until after the sum, and what is summed are the stored numbers, int8 as whole ones.
//
//   y[n, o, i] = sum_{c, u} (w[o, c, u] * s[o]) * (x[n, c, i + u - 1] * t where that is inside)
//              = float(sum_{c, u} w[o, c, u] * (x[n, c, i + u - 1] where that is inside)) * s[o] * t
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Nothing where no sum is of that kind.
std::optional<Kernel> hoist_scales(const Kernel& kernel);

}  // namespace fusec
