// Shared by the parts of the model reader: the document, the file's name for messages, and checked access to values.
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
  // Throws for an element of a wrong kind; `found` becomes its description.
  [[noreturn]] void unfit(Json at, std::string what, std::string expected, std::string hint = "") const;
  // Throws an OpError of inference or of a dimension string as an Error at `at`, or at error.place below it.
  [[noreturn]] void fail(Json at, const OpError& error) const;
  // Throws if `found` exceeds the limit.
  void require_within(std::int64_t Limits::*limit, std::int64_t found, Json at) const;

  // Each throws if `at` is of another kind; `what` names it in the message.
  Json string(Json at, const char* what) const;
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

// The members of an object with a fixed set of keys. Unknown keys and missing required ones are errors.
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
// The type of one declaration, checked against the rules for all tensors (ir/type_rules.h). Rules that the symbols'
// bounds do not decide go to `checks`, if given; `what` names the tensor there.
TensorType read_type(const ReadContext& context, Json dtype, Json shape, const SymbolNames& names,
                     std::vector<LaunchCheck>* checks = nullptr, const std::string& what = "");

}  // namespace fusec
