// Splits a transposed convolution into dense convolutions, one per phase of the output modulo the stride. In each phase
// only every stride-th tap meets an input element, so the taps that would multiply zeros are skipped.
//
//   y[o, i] = sum over c, k < 4 of (x[c, (i + 1 - k) / 2] where that is whole) * w[c, o, k]
//
//   i = 2 j + r + const, k = 2 l + r:
//   y[o, 2 j + r + const] = sum over c, l < 2 of x[c, j - l + const] * w[c, o, 2 l + r]
//
// The output's axis becomes j and its phase r. The phase is one more batch axis, or a row axis if x does not depend on
// it. If the dilation and the stride have a common divisor g, a phase has two parts, r (of the taps) and e < g; outputs
// with e > 0 are 0.
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Returns nothing if the extent of the output axis is not a multiple of the stride (two blocks would write the last
// elements), or if the kernel does not have exactly one reduction, with taps of this kind.
std::optional<Kernel> with_subpixel_phases(const Kernel& kernel);

}  // namespace fusec
