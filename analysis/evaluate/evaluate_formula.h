// Evaluates a scalar expression at every index of an output, in blocks of lanes: the meaning of a formula, executed.
//
// Floats of 32 bits are rounded after every operation, sums accumulate in float64 and are rounded once; transcendental
// functions come from the C library in float64. Under Precision::kFloat64 nothing is rounded to float32, nor to 16 bits
// unless it is a constant. Loads outside their tensor are an InternalError: a formula that needs
// such a load is wrong.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analysis/evaluate/scalar_functions.h"
#include "ir/expr.h"
#include "ir/host_tensor.h"

namespace fusec {

// `axes` are the output's, outermost first; `symbols` the values of the pool's symbols; `tensor_of` what a load reads.
// The result's shape is the axes' extents, its dtype what `dtype` is held as (held_dtype). Operands may be held either
// way.
HostTensor evaluate_formula(const ExprPool& pool, ExprId expr, const std::vector<std::uint32_t>& axes, DType dtype,
                            const std::vector<std::int64_t>& symbols,
                            const std::function<const HostTensor&(std::uint32_t)>& tensor_of,
                            Precision precision = Precision::kDeclared);

// The same where it takes at most `steps_left` scalar operations, which are then taken off; else nothing.
std::optional<HostTensor> evaluate_formula_within(std::int64_t& steps_left, const ExprPool& pool, ExprId expr,
                                                  const std::vector<std::uint32_t>& axes, DType dtype,
                                                  const std::vector<std::int64_t>& symbols,
                                                  const std::function<const HostTensor&(std::uint32_t)>& tensor_of,
                                                  Precision precision = Precision::kDeclared);

}  // namespace fusec
