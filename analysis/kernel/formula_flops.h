// Operations that the formulas of a kernel ask for, whatever its form: what reports say of nodes, as people count them.
//
//   silu [M, N]    3 M N        linear [M, K] x [N, K]    2 M N K
//
// Each distinct value is counted once. Arithmetic and comparisons for a maximum or minimum are one each, a function
// one, a sigmoid two (a function and a division); conversions, selections and index arithmetic are none.
#pragma once

#include "analysis/kernel/kernel.h"

namespace fusec {

double formula_flops(const Kernel& kernel);

}  // namespace fusec
