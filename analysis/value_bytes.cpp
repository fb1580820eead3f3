#include "analysis/value_bytes.h"

namespace fusec {
namespace {

std::int64_t bytes_of(const ValueType& type, const Symbols& symbols) {
  if (!type.is_tuple) return bytes_at_hint(type.tensor, symbols);
  std::int64_t sum = 0;
  for (const ValueType& field : type.fields) sum += bytes_of(field, symbols);
  return sum;
}

}  // namespace

std::int64_t ValueBytes::of(ValueId v) {
  const Value& value = graph_.value(v);
  if (value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kDim) return 0;
  std::int64_t& bytes = known_[value.type];
  if (bytes < 0) bytes = bytes_of(graph_.type_by_id(value.type), graph_.symbols);
  return bytes;
}

}  // namespace fusec
