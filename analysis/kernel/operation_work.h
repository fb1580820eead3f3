// What one evaluation of an expression's node costs: `flops` as reports count them, and executed operations on the
// arithmetic and special-function units. Costs of functions are estimates of the CUDA library's code.
#pragma once

#include "ir/expr.h"

namespace fusec {

struct OperationWork {
  double flops = 0, arithmetic = 0, special = 0;
};

OperationWork operation_work(const ExprNode& node);

// Returns how many instructions the node adds to a kernel's code, rarely taken branches included. Unrolling multiplies
// this number, and NVRTC's compile time grows with it.
int instruction_count(const ExprNode& node);

}  // namespace fusec
