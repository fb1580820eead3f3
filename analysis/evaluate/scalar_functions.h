// What each scalar operation of an expression does to one element, on the host.
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/expr.h"

namespace fusec {

// How exactly floats are computed.
enum class Precision : std::uint8_t {
  kDeclared,  // as the graph declares: float32 is rounded after every operation, results are rounded to their dtype
  // Floats of 16 bits and more are float64 throughout: neither operations nor results nor casts round them.
  // Quantization is part of what a graph means: results of 8 bits and fewer, and integers, are those of the unrounded
  // values.
  kFloat64,
};

// The dtype that a value of this dtype has in memory.
inline DType held_dtype(DType dtype, Precision precision) {
  return precision == Precision::kFloat64 && is_float(dtype) && bits(dtype) >= 16 ? DType::kFloat64 : dtype;
}

// A lane's value: floats are in `real`, bools and integers in `whole` (uint64 by its bits).
union Lane {
  double real;
  std::int64_t whole;
};

// Result of a conversion, unary, binary or ternary operation. `type` is the result's, `operand` the first operand's
// (for a select and comparisons of bools: of the compared values).
Lane apply_scalar(const ExprNode& node, ScalarType operand, Lane a, Lane b, Lane c, Precision precision);

// A reduction's first value, and one step of it (kArgMax and kArgMin are the caller's).
Lane reduction_start(Reduction reduction, ScalarType type);
Lane reduction_step(Reduction reduction, ScalarType type, Lane sum, Lane value);

}  // namespace fusec
