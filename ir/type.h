// Types of values: a tensor's dtype and shape, or a tuple of types.
#pragma once

#include <string>
#include <vector>

#include "ir/bounds.h"
#include "ir/dtype.h"
#include "ir/index_expr.h"

namespace fusec {

struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;

  std::size_t rank() const { return shape.size(); }
  bool operator==(const TensorType&) const = default;
};

// A tensor type, or the type of a tuple of tensors and tuples (an operand of get_item).
struct ValueType {
  TensorType tensor;  // unless is_tuple
  bool is_tuple = false;
  std::vector<ValueType> fields;  // if is_tuple

  ValueType() = default;
  ValueType(TensorType t) : tensor(std::move(t)) {}  // NOLINT(google-explicit-constructor): a tensor type is a type
  static ValueType tuple(std::vector<ValueType> fields);
  bool operator==(const ValueType&) const = default;
};

// "bfloat16[tokens, 4096]", "(float32[4], int64[4])"
std::string to_string(const TensorType& type, const Symbols& symbols);
std::string to_string(const ValueType& type, const Symbols& symbols);
std::string to_string(const Dim& dim, const Symbols& symbols);

// Bytes of a tensor at the symbols' hints.
std::int64_t bytes_at_hint(const TensorType& type, const Symbols& symbols);
std::int64_t value_at_hint(const IndexExpr& e, const Symbols& symbols);

// The position of an index in a dense row-major tensor.
IndexExpr flat_index(const Shape& shape, std::span<const IndexExpr> index);

}  // namespace fusec
