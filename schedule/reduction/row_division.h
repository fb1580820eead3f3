// Replaces the division of every element of a row by one number per row with a multiplication by its reciprocal:
//
//   exp(x[r, j] - max[r]) / sum[r]   ->   exp(x[r, j] - max[r]) * (1 / sum[r])
//
// It applies only to divisors with a known range in which the reciprocal is neither subnormal nor infinite: square
// roots, and sums of exponentials with a largest term of 1.
#pragma once

#include "analysis/kernel/kernel.h"

namespace fusec {

Kernel divide_once_a_row(const Kernel& kernel);

}  // namespace fusec
