// Hoists scales and conversions out of contractions of int8 or float8: factors that are constant along K move behind
// the sum, and the stored numbers are multiplied instead (int8 as integers).
//
//   y[n, o, i] = sum_{c, u} (w[o, c, u] * s[o]) * (x[n, c, i + u - 1] * t if inside)
//              = float(sum_{c, u} w[o, c, u] * (x[n, c, i + u - 1] if inside)) * s[o] * t
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Returns nullopt when no sum has that form.
std::optional<Kernel> hoist_scales(const Kernel& kernel);

}  // namespace fusec
