#include "ir/attribute_text.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "ir/json_document.h"
#include "ir/spelling.h"
#include "ir/type.h"

namespace fusec {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value < 0 ? "\"-inf\"" : "\"inf\"";
  return json_number(value);
}

template <class T, class Print>
std::string list_text(const std::vector<T>& values, const Print& print) {
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? ", " : "") + print(value);
  return text + "]";
}

}  // namespace

std::string json_text(const Scalar& scalar) {
  if (scalar.category == Category::kBool) return scalar.integer ? "true" : "false";
  if (scalar.category == Category::kInteger) return std::to_string(scalar.integer);
  return number_text(scalar.real);
}

std::string element_text(const Scalar& element, DType dtype) {
  if (dtype == DType::kUInt64)
    return std::to_string(static_cast<std::uint64_t>(element.integer));  // stored by its bits
  if (element.category != Category::kFloat || !std::isfinite(element.real) || dtype == DType::kFloat64)
    return json_text(element);
  std::string text = fmt::format("{}", static_cast<float>(element.real));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string json_text(const Dim& dim, const Symbols& symbols) {
  return dim.is_constant() ? std::to_string(dim.constant_term()) : json_string(to_string(dim, symbols));
}

std::string json_text(const AttributeValue& value, const Symbols& symbols) {
  return std::visit(
      [&](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::int64_t>)
          return std::to_string(v);
        else if constexpr (std::is_same_v<T, double>)
          return number_text(v);
        else if constexpr (std::is_same_v<T, std::string>)
          return json_string(v);
        else if constexpr (std::is_same_v<T, DType>)
          return json_string(name(v));
        else if constexpr (std::is_same_v<T, Scalar>)
          return json_text(v);
        else if constexpr (std::is_same_v<T, Dim>)
          return json_text(v, symbols);
        else if constexpr (std::is_same_v<T, RawJson>)
          return v.text;
        else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
          return list_text(v, [](std::int64_t x) { return std::to_string(x); });
        else if constexpr (std::is_same_v<T, std::vector<Dim>>)
          return list_text(v, [&](const Dim& x) { return json_text(x, symbols); });
        else
          return list_text(v, number_text);
      },
      value);
}

}  // namespace fusec
