#include "ir/type.h"

#include <limits>
#include <stdexcept>

namespace fusec {

ValueType ValueType::tuple(std::vector<ValueType> fields) {
  ValueType type;
  type.is_tuple = true;
  type.fields = std::move(fields);
  return type;
}

std::string to_string(const Dim& dim, const Symbols& symbols) {
  return to_string(dim, [&](Variable v) { return symbols.at(v.id).name; });
}

std::string to_string(const TensorType& type, const Symbols& symbols) {
  std::string text(name(type.dtype));
  text += "[";
  for (std::size_t i = 0; i < type.shape.size(); ++i) text += (i ? ", " : "") + to_string(type.shape[i], symbols);
  return text + "]";
}

std::string to_string(const ValueType& type, const Symbols& symbols) {
  if (!type.is_tuple) return to_string(type.tensor, symbols);
  constexpr std::size_t kLongest = 400;  // bytes; fields beyond are only counted
  std::string text = "(";
  for (std::size_t i = 0; i < type.fields.size(); ++i) {
    if (text.size() > kLongest) {
      text += ", ... " + std::to_string(type.fields.size()) + " fields";
      break;
    }
    text += (i ? ", " : "") + to_string(type.fields[i], symbols);
  }
  return text + ")";
}

std::int64_t value_at_hint(const IndexExpr& e, const Symbols& symbols) {
  try {
    return evaluate(e, [&](Variable v) { return symbols.at(v.id).hint; });
  } catch (const std::overflow_error&) {
    return std::numeric_limits<std::int64_t>::max();
  }
}

std::int64_t bytes_at_hint(const TensorType& type, const Symbols& symbols) {
  const auto count = element_count(type.shape);
  if (!count) return std::numeric_limits<std::int64_t>::max();
  return packed_bytes(type.dtype, value_at_hint(*count, symbols));
}

IndexExpr flat_index(const Shape& shape, std::span<const IndexExpr> index) {
  IndexExpr flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

}  // namespace fusec
