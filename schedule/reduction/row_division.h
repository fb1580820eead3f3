// Where every element of a row is divided by one number of the row, the row divides once:
//
//   exp(x[r, j] - max[r]) / sum[r]   ->   exp(x[r, j] - max[r]) * (1 / sum[r])
//
// only where the reciprocal is as exact as any float: divisors that are known to be neither so large nor so small that
// it would be subnormal or infinite (square roots, sums of exponentials the greatest of which is 1).
#pragma once

#include "analysis/kernel/kernel.h"

namespace fusec {

Kernel divide_once_a_row(const Kernel& kernel);

}  // namespace fusec
