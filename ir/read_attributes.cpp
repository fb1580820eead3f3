#include "ir/read_attributes.h"

#include <fmt/format.h>

#include <limits>

#include "ir/reserved_words.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

// Reads one attribute and converts it to the type that its row declares.
struct AttributeReader {
  const ReadContext& context;
  const SymbolNames& names;
  const AttributeSpec& spec;

  [[noreturn]] void unfit(Json at, std::string expected) const {
    context.unfit(at, "attribute " + spec.name, std::move(expected));
  }

  std::int64_t integer(Json at) const {
    if (at.is(JsonKind::kUnsigned) || at.is(JsonKind::kHuge)) unfit(at, "an integer of 64 bits");
    if (!at.is(JsonKind::kInteger)) unfit(at, "an integer");
    return at.integer();
  }

  double number(Json at) const {
    if (!at.is_number()) unfit(at, "a number");
    return at.number();
  }

  std::string text(Json at, const char* otherwise = "") const {
    if (!at.is(JsonKind::kString)) unfit(at, spec.choices.empty() ? "a string" : otherwise + choices());
    if (spec.choices.empty()) return std::string(at.text());
    std::vector<std::string_view> allowed(spec.choices.begin(), spec.choices.end());
    for (const std::string_view choice : allowed)
      if (choice == at.text()) return std::string(choice);
    context.unfit(at, "attribute " + spec.name, otherwise + choices(), did_you_mean(at.text(), allowed));
  }

  std::string choices() const {
    std::vector<std::string> list;
    for (const std::string& choice : spec.choices) list.push_back(in_quotes(choice));
    return (list.size() > 1 ? "one of " : "") + listed(list);
  }

  Scalar scalar(Json at, const char* expected) const {
    if (at.is(JsonKind::kString)) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (at.text() == "nan") return Scalar::floating(std::numeric_limits<double>::quiet_NaN());
      if (at.text() == "inf") return Scalar::floating(kInfinity);
      if (at.text() == "-inf") return Scalar::floating(-kInfinity);
    }
    if (at.is(JsonKind::kBool)) return Scalar::boolean(at.boolean());
    if (!at.is_number()) unfit(at, expected);
    return read_scalar(context, at, ("attribute " + spec.name).c_str());
  }

  Dim dim(Json at) const {
    if (!at.is(JsonKind::kString)) {
      if (!at.is_number()) unfit(at, "an integer or a dimension expression");
      return integer(at);
    }
    try {
      return parse_dim(at.text(), names);
    } catch (const OpError& error) {
      context.fail(at, error);
    }
  }

  template <class T, class Read>
  std::vector<T> list(Json at, const char* expected, const Read& read) const {
    std::vector<T> values;
    if (!at.is(JsonKind::kArray)) {
      if (!at.is_number() && !at.is(JsonKind::kString)) unfit(at, expected);
      values.push_back(read(at));
      return values;
    }
    values.reserve(at.size());
    for (const Json item : at) values.push_back(read(item));
    return values;
  }

  std::vector<std::int64_t> integers(Json at) const {
    return list<std::int64_t>(at, "an integer or an array of integers", [&](Json item) { return integer(item); });
  }
  std::vector<Dim> dims(Json at) const {
    return list<Dim>(at, "a dimension or an array of dimensions", [&](Json item) { return dim(item); });
  }

  AttributeValue read(Json at) const {
    switch (spec.type) {
      case AttributeType::kFlag:
        return context.flag(at, ("attribute " + spec.name).c_str());
      case AttributeType::kInteger:
        return integer(at);
      case AttributeType::kNumber:
        return number(at);
      case AttributeType::kText:
        return text(at);
      case AttributeType::kDType:
        return read_dtype(context, at, ("attribute " + spec.name).c_str());
      case AttributeType::kScalar:
        return scalar(at, "a number, a boolean, \"nan\", \"inf\" or \"-inf\"");
      case AttributeType::kDim:
        return dim(at);
      case AttributeType::kIntegers:
        return integers(at);
      case AttributeType::kDims:
        return dims(at);
      case AttributeType::kIntegersOrText:
        if (at.is(JsonKind::kString)) return text(at, "integers or ");
        return integers(at);
      case AttributeType::kScalarOrDim:
        if (at.is(JsonKind::kString)) return dim(at);
        return scalar(at, "a number or a dimension expression");
      case AttributeType::kDimOrDims:
        if (at.is(JsonKind::kArray)) return dims(at);
        return dim(at);
    }
    return {};
  }
};

// Checks the launcher's name, which emitted source contains unchanged.
void check_launcher(const ReadContext& context, Json member) {
  if (!member.is(JsonKind::kString)) context.unfit(member, "the launcher's name", std::string(kLauncherName));
  const std::string_view fault = launcher_name_fault(member.text());
  if (!fault.empty())
    context.fail(member, "the launcher's name", fmt::format("{}, {}", in_quotes(member.text()), fault),
                 std::string(kLauncherName));
}

Attributes custom_attributes(const ReadContext& context, Json attrs) {
  std::vector<Attribute> list;
  for (const Json member : attrs) {
    const std::string_view key = member.key_text();
    if (key == "expr") context.name(member, "the op's expression");
    if (key == "symbol") check_launcher(context, member);
    AttributeValue value;
    if (member.is(JsonKind::kString))
      value = std::string(member.text());
    else
      value = RawJson{minified(member)};
    list.push_back({std::string(key), std::move(value)});
  }
  return Attributes(std::move(list));
}

[[noreturn]] void unknown_attribute(const ReadContext& context, Json member, const OpDef& op) {
  std::vector<std::string_view> names;
  std::vector<std::string> list;
  for (const AttributeSpec& spec : op.attributes) names.push_back(spec.name), list.push_back(spec.name);
  context.fail(member, "unknown attribute of " + op.name, in_quotes(member.key_text()),
               list.empty() ? "no attributes" : (list.size() > 1 ? "one of " : "") + listed(list),
               did_you_mean(member.key_text(), names));
}

bool is_list(AttributeType type) {
  return type == AttributeType::kIntegers || type == AttributeType::kDims || type == AttributeType::kDimOrDims;
}

}  // namespace

Scalar read_scalar(const ReadContext& context, Json at, const char* what) {
  if (at.is(JsonKind::kBool)) return Scalar::boolean(at.boolean());
  if (at.is(JsonKind::kInteger)) return Scalar::whole(at.integer());
  if (at.is(JsonKind::kFloat)) return Scalar::floating(at.number());
  if (at.is_number()) context.unfit(at, what, "an integer of 64 bits");
  context.unfit(at, what, "a number or a boolean");
}

Attributes read_attributes(const ReadContext& context, Json node, const std::optional<Json>& attrs, const OpDef& op,
                           const SymbolNames& names) {
  if (attrs) context.object(*attrs, "a node's attributes");
  if (op.custom) return attrs ? custom_attributes(context, *attrs) : Attributes();
  std::vector<Attribute> list;
  if (attrs) {
    for (const Json member : *attrs) {
      const AttributeSpec* spec = nullptr;
      for (const AttributeSpec& candidate : op.attributes)
        if (candidate.name == member.key_text()) spec = &candidate;
      if (!spec) unknown_attribute(context, member, op);
      list.push_back({spec->name, AttributeReader{context, names, *spec}.read(member)});
    }
  }
  Attributes attributes(std::move(list));
  for (const AttributeSpec& spec : op.attributes)
    if (spec.required && !attributes.has(spec.name))
      context.fail(attrs ? *attrs : node, op.name + " needs " + in_quotes(spec.name), "no such attribute",
                   "\"attrs\": {" + in_quotes(spec.name) + (is_list(spec.type) ? ": [...]}" : ": ...}"));
  return attributes;
}

}  // namespace fusec
