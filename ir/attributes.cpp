#include "ir/attributes.h"

#include <algorithm>

#include "ir/error.h"

namespace fusec {
namespace {

template <class T>
const T* get(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.find(name);
  if (!value) return nullptr;
  const T* typed = std::get_if<T>(value);
  if (!typed) throw InternalError("attribute " + std::string(name) + " has another type than its reader expects");
  return typed;
}

template <class T>
const T& demand(const Attributes& attributes, std::string_view name) {
  const T* typed = get<T>(attributes, name);
  if (!typed) throw InternalError("attribute " + std::string(name) + " is missing and has no default");
  return *typed;
}

}  // namespace

Attributes::Attributes(std::vector<Attribute> list) : list_(std::move(list)) {
  std::sort(list_.begin(), list_.end(), [](const Attribute& a, const Attribute& b) { return a.name < b.name; });
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const Attribute& attribute : list_)
    if (attribute.name == name) return &attribute.value;
  return nullptr;
}

void Attributes::set(std::string_view name, AttributeValue value) {
  auto at = std::lower_bound(list_.begin(), list_.end(), name,
                             [](const Attribute& a, std::string_view n) { return a.name < n; });
  if (at != list_.end() && at->name == name)
    at->value = std::move(value);
  else
    list_.insert(at, {std::string(name), std::move(value)});
}

bool Attributes::flag(std::string_view name, bool otherwise) const {
  const bool* v = get<bool>(*this, name);
  return v ? *v : otherwise;
}
std::int64_t Attributes::integer(std::string_view name) const {
  return demand<std::int64_t>(*this, name);
}
std::int64_t Attributes::integer(std::string_view name, std::int64_t otherwise) const {
  const std::int64_t* v = get<std::int64_t>(*this, name);
  return v ? *v : otherwise;
}
double Attributes::number(std::string_view name) const {
  return demand<double>(*this, name);
}
double Attributes::number(std::string_view name, double otherwise) const {
  const double* v = get<double>(*this, name);
  return v ? *v : otherwise;
}
std::string Attributes::text(std::string_view name, std::string_view otherwise) const {
  const std::string* v = get<std::string>(*this, name);
  return v ? *v : std::string(otherwise);
}
DType Attributes::dtype(std::string_view name) const {
  return demand<DType>(*this, name);
}
Scalar Attributes::scalar(std::string_view name) const {
  return demand<Scalar>(*this, name);
}
std::optional<std::vector<std::int64_t>> Attributes::integers(std::string_view name) const {
  const auto* v = get<std::vector<std::int64_t>>(*this, name);
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<Dim> Attributes::dim(std::string_view name) const {
  const Dim* v = get<Dim>(*this, name);
  return v ? std::optional(*v) : std::nullopt;
}
std::optional<std::vector<Dim>> Attributes::dims(std::string_view name) const {
  const auto* v = get<std::vector<Dim>>(*this, name);
  return v ? std::optional(*v) : std::nullopt;
}

}  // namespace fusec
