// What one evaluation of an expression's node takes: operations as counted for people, and as executed. Functions are
// about what the CUDA library makes of them.
#pragma once

#include "ir/expr.h"

namespace fusec {

struct OperationWork {
  double flops = 0, arithmetic = 0, special = 0;
};

OperationWork operation_work(const ExprNode& node);

// Instructions that stand in a kernel's text for it, those of branches that are rarely taken among them: what unrolled
// loops multiply, and NVRTC takes its time over.
int instruction_count(const ExprNode& node);

}  // namespace fusec
