// Splits a sum over a concat along K into one sum per concat operand. Each of these multiplies a plain load that a GEMM
// can copy, while the whole sum selects between loads for each element.
//
//   y[i, j] = sum over k < 384 of (k < 256 ? a[i, k] : b[i, k - 256]) * w[j, k]
//           = (sum over k < 256 of a[i, k] * w[j, k]) + (sum over k < 128 of b[i, k] * w[j, k + 256])
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Returns nullopt when no sum selects between loads along a summed axis, or when there would be too many segments.
std::optional<Kernel> with_k_segments(const Kernel& kernel);

}  // namespace fusec
