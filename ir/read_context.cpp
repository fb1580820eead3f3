#include "ir/read_context.h"

#include <fmt/format.h>

#include "ir/error.h"
#include "ir/spelling.h"
#include "ir/type_rules.h"

namespace fusec {

void ReadContext::fail_at(std::string pointer, std::string what, std::string found, std::string expected,
                          std::string hint) const {
  throw Error(ErrorKind::kInput, {.file = file,
                                  .pointer = std::move(pointer),
                                  .what = std::move(what),
                                  .found = std::move(found),
                                  .expected = std::move(expected),
                                  .hint = std::move(hint)});
}

void ReadContext::fail(Json at, std::string what, std::string found, std::string expected, std::string hint) const {
  fail_at(at.pointer(), std::move(what), std::move(found), std::move(expected), std::move(hint));
}

void ReadContext::unfit(Json at, std::string what, std::string expected, std::string hint) const {
  fail_at(at.pointer(), std::move(what), at.description(), std::move(expected), std::move(hint));
}

void ReadContext::fail(Json at, const OpError& error) const {
  fail_at(at.pointer() + (error.place.empty() ? "" : "/" + error.place), error.what, error.found, error.expected,
          error.hint);
}

void ReadContext::require_within(std::int64_t Limits::*limit, std::int64_t found, Json at) const {
  if (found <= limits.*limit) return;
  const Error::Parts parts = beyond_limit(limits, limit, found);
  fail(at, parts.what, parts.found, parts.expected, parts.hint);
}

Json ReadContext::string(Json at, const char* what) const {
  if (!at.is(JsonKind::kString)) unfit(at, what, "a string");
  return at;
}

Json ReadContext::array(Json at, const char* what) const {
  if (!at.is(JsonKind::kArray)) unfit(at, what, "an array");
  return at;
}

Json ReadContext::object(Json at, const char* what) const {
  if (!at.is(JsonKind::kObject)) unfit(at, what, "an object");
  return at;
}

bool ReadContext::flag(Json at, const char* what) const {
  if (!at.is(JsonKind::kBool)) unfit(at, what, "true or false");
  return at.boolean();
}

std::int64_t ReadContext::integer(Json at, const char* what, std::int64_t least) const {
  if (!at.is(JsonKind::kInteger) || at.integer() < least)
    unfit(at, what, fmt::format("an integer of at least {}", least));
  return at.integer();
}

std::string ReadContext::name(Json at, const char* what) const {
  if (!at.is(JsonKind::kString) || at.text().empty()) unfit(at, what, "a string of at least one character");
  return std::string(at.text());
}

Fields::Fields(const ReadContext& context, Json object, const char* what, std::initializer_list<Field> fields) {
  context.object(object, what);
  for (const Json member : object) {
    const std::string_view key = member.key_text();
    std::size_t i = 0;
    for (const Field& field : fields) {
      if (field.name == key) break;
      ++i;
    }
    if (i < fields.size()) {
      found_[i] = member;
      continue;
    }
    std::vector<std::string_view> names;
    std::vector<std::string> list;
    for (const Field& field : fields) names.push_back(field.name), list.emplace_back(field.name);
    context.fail(member, "unknown key", in_quotes(key), "one of " + listed(list), did_you_mean(key, names));
  }
  std::size_t i = 0;
  for (const Field& missing : fields) {
    if (found_[i++] || !missing.required) continue;
    std::vector<std::string> required;
    for (const Field& field : fields)
      if (field.required) required.emplace_back(field.name);
    context.fail(object, "missing key", "no " + in_quotes(missing.name),
                 fmt::format("{} with {}", what, listed(required)));
  }
}

Dim read_dim(const ReadContext& context, Json at, const SymbolNames& names) {
  if (at.is(JsonKind::kInteger)) {
    if (at.integer() < 0) context.unfit(at, "negative dimension", "a non-negative integer or an expression");
    return at.integer();
  }
  if (at.is(JsonKind::kUnsigned) || at.is(JsonKind::kHuge))
    context.unfit(at, "a dimension overflows 63 bits", "numbers below 2^63");
  if (!at.is(JsonKind::kString)) context.unfit(at, "a dimension", "a non-negative integer or an expression");
  try {
    Dim dim = parse_dim(at.text(), names);
    if (range_of(dim, {names.symbols(), {}, {}}).max < 0)
      context.unfit(at, "negative dimension", "a value of at least 0 for some value of its symbols");
    return dim;
  } catch (const OpError& error) {
    context.fail(at, error);
  }
}

Shape read_shape(const ReadContext& context, Json at, const SymbolNames& names) {
  Shape shape;
  shape.reserve(context.array(at, "a shape").size());
  for (const Json dim : at) shape.push_back(read_dim(context, dim, names));
  return shape;
}

DType read_dtype(const ReadContext& context, Json at, const char* what) {
  const std::string_view text = context.string(at, what).text();
  if (const auto dtype = parse_dtype(text)) return *dtype;
  std::vector<std::string_view> names;
  std::vector<std::string> list;
  for (const DTypeInfo& row : all_dtypes()) names.push_back(row.name), list.emplace_back(row.name);
  context.fail(at, "unknown dtype", in_quotes(text), "one of " + listed(list), did_you_mean(text, names));
}

TensorType read_type(const ReadContext& context, Json dtype, Json shape, const SymbolNames& names,
                     std::vector<LaunchCheck>* checks, const std::string& what) {
  TensorType type{read_dtype(context, dtype, "a dtype"), read_shape(context, shape, names)};
  try {
    check_type(type, names.symbols(), checks, what);
  } catch (const OpError& error) {
    context.fail(shape, error);
  }
  return type;
}

}  // namespace fusec
