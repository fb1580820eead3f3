// An op's attributes: the values of the graph file, converted to the types that the op's row declares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/index_expr.h"

namespace fusec {

// A JSON number or boolean: a weakly typed scalar, as a Python number is in PyTorch.
struct Scalar {
  Category category = Category::kFloat;
  std::int64_t integer = 0;  // kBool (0 or 1) and kInteger
  double real = 0;           // kFloat

  static Scalar boolean(bool v) { return {Category::kBool, v, 0}; }
  static Scalar whole(std::int64_t v) { return {Category::kInteger, v, 0}; }
  static Scalar floating(double v) { return {Category::kFloat, 0, v}; }
  double as_double() const { return category == Category::kFloat ? real : static_cast<double>(integer); }
  bool operator==(const Scalar&) const = default;
};

// JSON text of an attribute that no schema describes (custom ops), minified with sorted keys.
struct RawJson {
  std::string text;
  bool operator==(const RawJson&) const = default;
};

using AttributeValue = std::variant<bool, std::int64_t, double, std::string, DType, Scalar, Dim,
                                    std::vector<std::int64_t>, std::vector<Dim>, std::vector<double>, RawJson>;

struct Attribute {
  std::string name;
  AttributeValue value;
  bool operator==(const Attribute&) const = default;
};

// The attributes of one node, sorted by name. Absent attributes are not stored; accessors return the default.
class Attributes {
 public:
  Attributes() = default;
  explicit Attributes(std::vector<Attribute> list);

  const AttributeValue* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void set(std::string_view name, AttributeValue value);
  const std::vector<Attribute>& list() const { return list_; }
  bool empty() const { return list_.empty(); }

  // Each throws InternalError when the attribute has another type, or is missing and has no default.
  bool flag(std::string_view name, bool otherwise) const;
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double number(std::string_view name) const;
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  DType dtype(std::string_view name) const;
  Scalar scalar(std::string_view name) const;
  std::optional<std::vector<std::int64_t>> integers(std::string_view name) const;
  std::optional<Dim> dim(std::string_view name) const;
  std::optional<std::vector<Dim>> dims(std::string_view name) const;

  bool operator==(const Attributes&) const = default;

 private:
  std::vector<Attribute> list_;
};

}  // namespace fusec
