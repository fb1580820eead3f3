// Results that say the same again and again along an axis: a thread reads and computes an element once and stores it at
// every place.
//
//   y[i, 3, j] = relu(x[i, j])    axes i, r, j   ->   axes i, j, three stores
#pragma once

#include <optional>

#include "analysis/kernel.h"

namespace fusec {

struct RepeatedAxis {
  Kernel kernel;  // without the axis; its outputs are there once for each place
  int times = 1;
};

// Nothing where no short axis is like that.
std::optional<RepeatedAxis> without_repeated_axis(const Kernel& kernel);

}  // namespace fusec
