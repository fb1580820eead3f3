// The number of floating-point operations in the formulas of a kernel, whatever its form. Reports show it per node.
//
//   silu [M, N]    3 M N        linear [M, K] x [N, K]    2 M N K
//
// Each distinct value counts once. An arithmetic operation, a maximum, a minimum or a function counts one; a sigmoid
// counts two (a function and a division); conversions, selections and index arithmetic count none.
#pragma once

#include "analysis/kernel/kernel.h"

namespace fusec {

double formula_flops(const Kernel& kernel);

}  // namespace fusec
