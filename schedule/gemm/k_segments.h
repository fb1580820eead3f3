// Sums over what a concat joins along the depth, as one sum for each of its operands: factors of these are loads that
// products copy as they lie, where that of the whole is a choice between them for each element.
//
//   y[i, j] = sum over k < 384 of (k < 256 ? a[i, k] : b[i, k - 256]) * w[j, k]
//           = (sum over k < 256 of a[i, k] * w[j, k]) + (sum over k < 128 of b[i, k] * w[j, k + 256])
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Nothing where no sum chooses between loads along a summed axis, or where there would be too many pieces.
std::optional<Kernel> with_k_segments(const Kernel& kernel);

}  // namespace fusec
