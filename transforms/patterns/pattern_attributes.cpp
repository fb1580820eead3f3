// Parses the attributes of a pattern's terms: dim=1, approximate=("none" | "tanh"); and in replacements attributes that
// are computed from the match: scale=1/a, shape=shape(x).
#include <fmt/format.h>

#include <algorithm>

#include "ir/spelling.h"
#include "transforms/patterns/pattern_terms.h"

namespace fusec {
namespace {

constexpr std::string_view kFunctions[] = {"shape", "dtype", "number", "last_dims", "extents", "extent", "batched"};

// The expected form if an attribute of this type can never equal the literal, else "".
std::string wanted_instead(const AttributeSpec& spec, const AttributeValue& literal) {
  const auto* text = std::get_if<std::string>(&literal);
  const bool is_whole = std::holds_alternative<std::int64_t>(literal);
  const bool is_number = is_whole || std::holds_alternative<double>(literal);
  const bool is_list = is_whole || std::holds_alternative<std::vector<std::int64_t>>(literal);
  const auto chosen = [&] {
    return text && (spec.choices.empty() || std::ranges::find(spec.choices, *text) != spec.choices.end());
  };
  const auto choices = [&](const char* otherwise) {
    return spec.choices.empty() ? std::string(otherwise) : fmt::format("\"{}\"", fmt::join(spec.choices, "\" or \""));
  };
  switch (spec.type) {
    case AttributeType::kFlag:
      return std::holds_alternative<bool>(literal) ? "" : "true or false";
    case AttributeType::kInteger:
      return is_whole ? "" : "an integer";
    case AttributeType::kNumber:
      return is_number ? "" : "a number";
    case AttributeType::kScalar:
      return is_number || std::holds_alternative<bool>(literal) ? "" : "a number";
    case AttributeType::kText:
      return chosen() ? "" : choices("a text");
    case AttributeType::kDType:
      return text && parse_dtype(*text) ? "" : "a dtype such as \"float16\"";
    case AttributeType::kIntegers:
    case AttributeType::kDims:
    case AttributeType::kDimOrDims:
      return is_list ? "" : "an integer or a list of integers";
    case AttributeType::kIntegersOrText:
      return is_list || chosen() ? "" : "integers, " + choices("or a text");
    case AttributeType::kDim:
    case AttributeType::kScalarOrDim:
      return is_number ? "" : "a number";
  }
  return "";
}

}  // namespace

PatternAttribute PatternTermReader::attribute(const OpDef* op) {
  const std::size_t token = cursor_.at();
  PatternAttribute a{.name = std::string(cursor_.word("an attribute"))};
  const AttributeSpec* spec = nullptr;
  if (op && !op->custom) {
    const auto found = std::ranges::find(op->attributes, a.name, &AttributeSpec::name);
    if (found == op->attributes.end()) {
      std::vector<std::string_view> names;
      for (const AttributeSpec& s : op->attributes) names.push_back(s.name);
      cursor_.fail(token, fmt::format("{} has no such attribute", op->name),
                   names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), did_you_mean(a.name, names));
    }
    spec = &*found;
  }
  cursor_.demand('=');
  const auto value = [&] {
    const std::size_t value_token = cursor_.at();
    const std::size_t before = a.allowed.size();
    attribute_value(a);
    if (!spec || a.allowed.size() == before) return;
    if (const std::string wanted = wanted_instead(*spec, a.allowed.back()); !wanted.empty())
      cursor_.fail(value_token, fmt::format("{} of {} is never so", a.name, op->name), wanted);
  };
  if (cursor_.take('(')) {
    do value();
    while (cursor_.take('|'));
    cursor_.demand(')');
  } else {
    value();
  }
  return a;
}

void PatternTermReader::attribute_value(PatternAttribute& a) {
  if (cursor_.is_text()) {
    a.allowed.emplace_back(cursor_.text());
  } else if (replacing_ && (cursor_.is_sign('*', 1) || cursor_.is_sign('/', 1))) {
    factors(a);
  } else if (cursor_.is_number()) {
    if (cursor_.peek().text.find_first_of(".eEi") == std::string_view::npos)
      a.allowed.emplace_back(cursor_.integer());
    else
      a.allowed.emplace_back(cursor_.number());
  } else if (cursor_.take('[')) {
    list(a);
  } else if (cursor_.take_word("true")) {
    a.allowed.emplace_back(true);
  } else if (cursor_.take_word("false")) {
    a.allowed.emplace_back(false);
  } else if (cursor_.take_word("absent")) {
    a.may_be_absent = true;
  } else if (cursor_.is_sign('(', 1)) {
    function_value(a);
  } else {
    name_value(a);
  }
}

void PatternTermReader::name_value(PatternAttribute& a) {
  const std::size_t token = cursor_.at();
  const std::string_view word = cursor_.word("a literal or a name");
  if (word == "_") {
    a.may_be_absent = true;
    a.bound = name_number("_" + std::to_string(++uses_));
  } else {
    a.bound = replacing_ ? known_name(word, token) : name_number(word);
  }
}

// Parses a list of integers; in a replacement its elements may be computed from the match.
void PatternTermReader::list(PatternAttribute& a) {
  std::vector<std::int64_t> literal;
  for (bool first = true; !cursor_.take(']'); first = false) {
    if (!first) cursor_.demand(',');
    PatternAttribute element;
    if (!replacing_ || !cursor_.is_word()) {
      literal.push_back(cursor_.whole_number());
      element.allowed.emplace_back(literal.back());
    } else if (cursor_.is_sign('(', 1)) {
      function_value(element);
    } else {
      name_value(element);
    }
    a.elements.push_back(std::move(element));
  }
  if (literal.size() < a.elements.size()) return;
  a.elements.clear();
  a.allowed.emplace_back(std::move(literal));
}

// "1/a", "a*b/c"
void PatternTermReader::factors(PatternAttribute& a) {
  bool divides = false;
  do {
    PatternAttribute::Factor factor{.divides = divides};
    if (cursor_.is_number())
      factor.number = cursor_.number();
    else
      factor.name = known_name();
    a.factors.push_back(factor);
    if (cursor_.take('*'))
      divides = false;
    else if (cursor_.take('/'))
      divides = true;
    else
      break;
  } while (true);
}

void PatternTermReader::function_value(PatternAttribute& a) {
  const std::size_t token = cursor_.at();
  a.function = cursor_.word("a function");
  if (!replacing_ || std::ranges::find(kFunctions, a.function) == std::end(kFunctions))
    cursor_.fail(token, "no such function here",
                 fmt::format("in what a pattern becomes: {}", fmt::join(kFunctions, ", ")));
  cursor_.demand('(');
  a.argument = known_name();
  if (a.function == "extents" || a.function == "batched") {
    cursor_.demand(',');
    a.second = known_name();
  } else if (cursor_.take(',')) {
    a.count = cursor_.whole_number();
  }
  cursor_.demand(')');
}

}  // namespace fusec
