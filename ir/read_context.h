// What the parts of the model reader share: the document, the file's name for messages, and strict access to objects.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/json_document.h"
#include "ir/limits.h"
#include "ir/op.h"
#include "ir/parse_dim.h"

namespace fusec {

struct ReadContext {
  const JsonDocument& document;
  const std::string& file;
  Limits limits = {};

  // Throws Error(kInput) at the element.
  [[noreturn]] void fail(Json at, std::string what, std::string found = "", std::string expected = "",
                         std::string hint = "") const;
  [[noreturn]] void fail_at(std::string pointer, std::string what, std::string found = "", std::string expected = "",
                            std::string hint = "") const;
  // An element that is not what it must be: found is its description.
  [[noreturn]] void unfit(Json at, std::string what, std::string expected, std::string hint = "") const;
  // What inference or a dimension string complains of, at an element or (error.place) below it.
  [[noreturn]] void fail(Json at, const OpError& error) const;
  // Throws where `found` exceeds the limit.
  void require_within(std::int64_t Limits::*limit, std::int64_t found, Json at) const;

  Json string(Json at, const char* what) const;  // checks and returns `at`
  Json array(Json at, const char* what) const;
  Json object(Json at, const char* what) const;
  bool flag(Json at, const char* what) const;
  std::int64_t integer(Json at, const char* what, std::int64_t least) const;
  std::string name(Json at, const char* what) const;  // a string of at least one character
};

struct Field {
  std::string_view name;
  bool required;
};

// The members of an object whose keys are known: unknown keys and missing required ones are errors.
class Fields {
 public:
  Fields(const ReadContext& context, Json object, const char* what, std::initializer_list<Field> fields);
  const std::optional<Json>& operator[](std::size_t field) const { return found_[field]; }

 private:
  static constexpr std::size_t kMost = 12;
  std::optional<Json> found_[kMost];
};

// A dimension of a shape: a non-negative integer, or an expression of symbols.
Dim read_dim(const ReadContext& context, Json at, const SymbolNames& names);
Shape read_shape(const ReadContext& context, Json at, const SymbolNames& names);
DType read_dtype(const ReadContext& context, Json at, const char* what);
// dtype and shape of one declaration, checked against the rules of all tensors (ir/type_rules.h).
// What the symbols' bounds do not decide goes to `checks`, if given; `what` names the tensor there.
TensorType read_type(const ReadContext& context, Json dtype, Json shape, const SymbolNames& names,
                     std::vector<LaunchCheck>* checks = nullptr, const std::string& what = "");

}  // namespace fusec
