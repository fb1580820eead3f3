#include "transforms/patterns/attribute_values.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace fusec {
namespace {

std::optional<double> as_number(const AttributeValue& v) {
  if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&v)) return *d;
  if (const auto* s = std::get_if<Scalar>(&v)) return s->as_double();
  if (const auto* dim = std::get_if<Dim>(&v)) {
    if (const auto c = dim->as_constant()) return static_cast<double>(*c);
  }
  return std::nullopt;
}

}  // namespace

bool names_dims(std::string_view attribute) {
  for (const std::string_view known : {"dim", "dims", "axis", "dim0", "dim1", "start_dim", "end_dim"})
    if (attribute == known) return true;
  return false;
}

AttributeValue from_zero(AttributeValue value, std::int64_t rank) {
  const auto positive = [&](std::int64_t d) { return d < 0 ? d + rank : d; };
  if (auto* one = std::get_if<std::int64_t>(&value)) *one = positive(*one);
  if (auto* list = std::get_if<std::vector<std::int64_t>>(&value))
    std::ranges::transform(*list, list->begin(), positive);
  if (auto* list = std::get_if<std::vector<std::int64_t>>(&value); list && list->size() == 1) return list->front();
  return value;
}

bool is_near(double found, double wanted, bool exact) {
  if (found == wanted) return true;
  return !exact && std::isfinite(wanted) && std::abs(found - wanted) <= 1e-6 * std::abs(wanted);
}

bool is_literal(const AttributeValue& found, const AttributeValue& literal) {
  if (const auto* text = std::get_if<std::string>(&literal)) {
    if (const auto* dtype = std::get_if<DType>(&found)) return name(*dtype) == *text;
    const auto* found_text = std::get_if<std::string>(&found);
    return found_text && *found_text == *text;
  }
  const auto a = as_number(found), b = as_number(literal);
  if (a && b) return is_near(*a, *b, std::holds_alternative<std::int64_t>(literal));
  return found == literal;
}

}  // namespace fusec
