// Transposed convolutions as the convolutions that they are made of: where a result lies modulo the stride says which
// of the taps meet an element, every so-manieth one, so that nothing is multiplied by what lies between the elements.
//
//   y[o, i] = sum over c, k < 4 of (x[c, (i + 1 - k) / 2] where that is whole) * w[c, o, k]
//
//   i = 2 j + r + const, k = 2 l + r:
//   y[o, 2 j + r + const] = sum over c, l < 2 of x[c, j - l + const] * w[c, o, 2 l + r]
//
// The output's axis becomes j and its phase r, a further dimension of the batch, or of the rows where x does not depend
// on it. With a dilation that has a divisor g in common with the stride, phases are r (taps) and e < g: what e > 0 has
// is 0.
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Nothing where results are no multiple of the stride along the axis (two blocks would make the last ones), and where
// no sum takes elements at whole quotients alone.
std::optional<Kernel> with_subpixel_phases(const Kernel& kernel);

}  // namespace fusec
