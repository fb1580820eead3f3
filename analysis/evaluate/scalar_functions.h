// The scalar operations of expressions on one element, on the host.
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/expr.h"

namespace fusec {

// How floats are rounded.
enum class Precision : std::uint8_t {
  kDeclared,  // as the graph declares: float32 is rounded after every operation, results are rounded to their dtype
  // Floats of 16 bits and more are float64 throughout: neither operations nor results nor casts round them.
  // Quantization is part of what a graph means: results of 8 bits and fewer, and integers, are those of the unrounded
  // values.
  kFloat64,
};

// Returns the dtype in which the host holds a value of `dtype`.
inline DType held_dtype(DType dtype, Precision precision) {
  return precision == Precision::kFloat64 && is_float(dtype) && bits(dtype) >= 16 ? DType::kFloat64 : dtype;
}

// The value of one lane: floats in `real`, bools and integers in `whole` (uint64 as its bit pattern).
union Lane {
  double real;
  std::int64_t whole;
};

// Returns the result of a conversion, unary, binary or ternary operation. `operand` is the type of the first operand
// (for a select, or a comparison of bools: of the compared values).
Lane apply_scalar(const ExprNode& node, ScalarType operand, Lane a, Lane b, Lane c, Precision precision);

// The initial value of a reduction, and one step of it. Not for kArgMax and kArgMin, which the caller computes.
Lane reduction_start(Reduction reduction, ScalarType type);
Lane reduction_step(Reduction reduction, ScalarType type, Lane sum, Lane value);

}  // namespace fusec
