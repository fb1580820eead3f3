// Evaluates a scalar expression on the host at every index of an output, in blocks of lanes. This defines the meaning
// of a formula.
//
// float32 operations round their results; sums accumulate in float64 and are rounded once; transcendental functions are
// those of the C library in float64. With Precision::kFloat64 nothing is rounded to float32, and only constants are
// rounded to 16 bits. A load outside its tensor is an InternalError, because the formula is then wrong.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analysis/evaluate/scalar_functions.h"
#include "ir/expr.h"
#include "ir/host_tensor.h"

namespace fusec {

// `axes` are the output's axes, outermost first. `symbols` are the values of the pool's symbols. `tensor_of` returns
// the tensor that a load reads, held in either precision. The result has the axes' extents as its shape and dtype
// held_dtype(dtype, precision).
HostTensor evaluate_formula(const ExprPool& pool, ExprId expr, const std::vector<std::uint32_t>& axes, DType dtype,
                            const std::vector<std::int64_t>& symbols,
                            const std::function<const HostTensor&(std::uint32_t)>& tensor_of,
                            Precision precision = Precision::kDeclared);

// Evaluates the formula if that takes at most `steps_left` scalar operations, and subtracts them. Otherwise returns
// nothing.
std::optional<HostTensor> evaluate_formula_within(std::int64_t& steps_left, const ExprPool& pool, ExprId expr,
                                                  const std::vector<std::uint32_t>& axes, DType dtype,
                                                  const std::vector<std::int64_t>& symbols,
                                                  const std::function<const HostTensor&(std::uint32_t)>& tensor_of,
                                                  Precision precision = Precision::kDeclared);

}  // namespace fusec
