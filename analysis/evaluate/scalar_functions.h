// What each scalar operation of an expression does to one element, on the host.
#pragma once

#include <cstdint>

#include "ir/expr.h"

namespace fusec {

// A lane's value: floats are in `real`, bools and integers in `whole` (uint64 by its bits).
union Lane {
  double real;
  std::int64_t whole;
};

// Result of a conversion, unary, binary or ternary operation. `type` is the result's, `operand` the first operand's
// (for a select and comparisons of bools: of the compared values).
Lane apply_scalar(const ExprNode& node, ScalarType operand, Lane a, Lane b, Lane c);

// A reduction's first value, and one step of it (kArgMax and kArgMin are the caller's).
Lane reduction_start(Reduction reduction, ScalarType type);
Lane reduction_step(Reduction reduction, ScalarType type, Lane sum, Lane value);

}  // namespace fusec
