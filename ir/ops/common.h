// Shared by the op rows of several families: type promotion, broadcasting, checks of operands and attributes.
//
// Inference throws OpError for a wrong call. Two symbolic dimensions that must be equal become a LaunchCheck if their
// bounds do not decide it.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/formula.h"
#include "ir/op.h"

namespace fusec::ops {

// --- errors

// OpError::place of an operand, "inputs/1", and of an attribute, "attrs/dim".
std::string input_place(std::size_t operand);
std::string attribute_place(std::string_view attribute);
[[noreturn]] void fail(std::string place, std::string what, std::string found = "", std::string expected = "",
                       std::string hint = "");

// --- operands

// The type of an operand that must be a tensor or a number (a number is 0-d).
const TensorType& tensor_operand(const OpCall& call, std::size_t operand);
// The type of an operand that must be a tensor or a number of exactly, or at least, this rank.
const TensorType& tensor_of_rank(const OpCall& call, std::size_t operand, std::size_t rank);
const TensorType& tensor_of_min_rank(const OpCall& call, std::size_t operand, std::size_t rank);
void require_float(const OpCall& call, std::size_t operand);
void require_dtype(const OpCall& call, std::size_t operand, std::initializer_list<DType> allowed);
// Indices are int64 or int32.
inline void require_index_dtype(const OpCall& call, std::size_t operand) {
  require_dtype(call, operand, {DType::kInt64, DType::kInt32});
}

// --- dtypes

inline constexpr DType kDefaultFloat = DType::kFloat32;
// The dtype that two tensors of one class promote to. Throws OpError if PyTorch defines none (8-bit floats, wide
// unsigned integers).
DType promote_dtypes(DType a, DType b);
// The dtype that operands promote to, by PyTorch's classes: tensors of rank 1 and more, then 0-d tensors, then numbers.
// A later class counts only if its category is higher. Absent operands are skipped.
DType promote(std::span<const Operand> operands);
DType promote(const OpCall& call, std::initializer_list<std::size_t> operands);
// A number as an operand, for promotion with attributes such as clamp's min.
Operand number_operand(const Scalar& number);
// The least and greatest value of an integer dtype; for uint64 cut to the range of int64.
struct IntegerRange {
  std::int64_t min, max;
};
IntegerRange integer_range(DType dtype);
// The number truncated to an integer and clamped to the range of the integer dtype.
Scalar saturated(const Scalar& number, DType dtype);
// The result dtype of float functions: float32 for bool and integers, the dtype itself for floats.
inline DType float_dtype(DType dtype) {
  return is_float(dtype) ? dtype : kDefaultFloat;
}
// The result dtype of sums and products: int64 for bool and integers, the dtype itself for floats.
inline DType sum_dtype(DType dtype) {
  return is_float(dtype) ? dtype : DType::kInt64;
}

// --- dimensions

inline Bounds bounds_of(const OpCall& call) {
  return {call.symbols, {}, {}};
}
std::string text_of(const OpCall& call, const Dim& dim);
std::string text_of(const OpCall& call, const Shape& shape);  // "[tokens, 4096]"
// Requires a and b to be equal and returns the simpler one. `what` names them in the error and in the launch check
// ("the inner dimensions of matmul"); `place` is the place of b.
Dim require_equal(const OpCall& call, const Dim& a, const Dim& b, const std::string& what, const std::string& place);
void require_equal_shapes(const OpCall& call, std::span<const Dim> a, std::span<const Dim> b, const std::string& what,
                          const std::string& place);
// Requires `dim` to be divisible by `by` and returns the quotient.
Dim require_divisible(const OpCall& call, const Dim& dim, const Dim& by, const std::string& what,
                      const std::string& place);
// NumPy broadcasting of the operands' shapes; only a dimension that is literally 1 broadcasts.
Shape broadcast_shapes(const OpCall& call, const Shape& a, const Shape& b, const std::string& place);
Shape broadcast_operands(const OpCall& call, std::initializer_list<std::size_t> operands);
// The operand's shape must broadcast to `to` without enlarging it.
void require_broadcastable(const OpCall& call, std::size_t operand, const Shape& to);

// A dimension number in [0, rank), from one that may be negative and then counts from the end. Rank 0 counts as 1, as
// in PyTorch.
std::size_t normalize_dim(std::int64_t dim, std::size_t rank, const std::string& place);
// Several dimension numbers, sorted. A repeated dimension is an error.
std::vector<std::size_t> normalize_dims(std::span<const std::int64_t> dims, std::size_t rank, const std::string& place);
// The attribute as a dimension number in [0, rank); `otherwise` if it is absent.
std::size_t dim_attribute(const OpCall& call, std::string_view attribute, std::size_t rank,
                          std::optional<std::int64_t> otherwise = std::nullopt);
// The attribute as a dimension number in a formula; inference has accepted it already.
std::size_t dim_attribute(const Formula& f, std::string_view attribute, std::size_t rank,
                          std::optional<std::int64_t> otherwise = std::nullopt);
// The reduced dimensions: attribute "dim", or all dimensions if it is absent or empty.
std::vector<std::size_t> reduced_dims(const Attributes& attributes, std::size_t rank);
Shape reduced_shape(const Shape& shape, const std::vector<std::size_t>& dims, bool keepdim);

// --- formulas

// The operand converted to `dtype` as PyTorch converts operands to their common dtype: rounded to it, except that a
// number or a 0-d tensor keeps the precision of the compute type.
E load_operand(Formula& f, std::size_t operand, Formula::Index index, DType dtype);
// x times the normal distribution function of x; `approximate` is "none" or "tanh".
E gelu(E x, std::string_view approximate);
// Wraps integers that are narrower than their compute type to the width of `dtype`; returns other values unchanged.
E wrap(Formula& f, E value, DType dtype);

}  // namespace fusec::ops
