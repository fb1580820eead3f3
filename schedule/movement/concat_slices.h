// Slices of one tensor that a concat joins, evenly apart, are an axis: pixels that go to channels are turned round as
// by a permutation, and each is read once.
//
//   y[c, i] = c < 3 ? x[c, 2 i] : x[c - 3, 2 i + 1]      axes k < 2, c < 3, i:   y[3 k + c, i] = x[c, 2 i + k]
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"

namespace fusec {

// Nothing where there are no such slices.
std::optional<Kernel> concat_slices_to_axes(const Kernel& kernel);

}  // namespace fusec
