// One use of an op in a line of a test: operands written as text ("bfloat16[tokens, 4]", "2.5", "true", "-" for an
// absent one), the inferred type or the error as text, the formula as text.
#pragma once

#include <string>
#include <vector>

#include "ir/formula.h"
#include "ir/op.h"
#include "ir/parse_dim.h"

namespace fusec::test {

// The symbols that operands of tests may use.
inline const Symbols& test_symbols() {
  static const Symbols symbols{{.name = "tokens", .min = 1, .max = 8192, .multiple_of = 1, .hint = 2048},
                               {.name = "wide", .min = 16, .max = 4096, .multiple_of = 16, .hint = 2048}};
  return symbols;
}

inline Dim test_dim(const std::string& text) {
  return parse_dim(text, SymbolNames(test_symbols()));
}

inline TensorType test_type(const std::string& text) {
  const std::size_t open = text.find('[');
  TensorType type{*parse_dtype(text.substr(0, open)), {}};
  const std::string list = text.substr(open + 1, text.size() - open - 2);
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    type.shape.push_back(test_dim(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return type;
}

inline Operand test_operand(const std::string& text, std::uint32_t value) {
  Operand o;
  if (text == "-") return o;
  if (text.find('[') != std::string::npos) {
    o.kind = Operand::Kind::kTensor;
    o.type = test_type(text);
    o.value = value;
    return o;
  }
  o.kind = Operand::Kind::kNumber;
  if (text == "true" || text == "false")
    o.number = Scalar::boolean(text == "true");
  else if (text.find_first_of(".e") != std::string::npos)
    o.number = Scalar::floating(std::stod(text));
  else
    o.number = Scalar::whole(std::stoll(text));
  o.type = TensorType{o.number.category == Category::kFloat     ? DType::kFloat32
                      : o.number.category == Category::kInteger ? DType::kInt64
                                                                : DType::kBool,
                      {}};
  return o;
}

struct TestCall {
  std::string op;
  std::vector<Operand> operands;
  Attributes attributes;
  std::vector<LaunchCheck> checks;

  TestCall(std::string op_name, const std::vector<std::string>& texts, std::vector<Attribute> given = {})
      : op(std::move(op_name)), attributes(std::move(given)) {
    for (const std::string& text : texts)
      operands.push_back(test_operand(text, static_cast<std::uint32_t>(operands.size())));
  }

  const OpDef& row() const { return *OpTable::builtin().find(op); }

  std::vector<ValueType> types() {
    checks.clear();
    return row().infer({operands, attributes, test_symbols(), {}, &checks});
  }

  // "float32[4]", with "; tokens == 4" for a check at launch; several results with "; " between; or
  // "inputs/1: shapes do not broadcast: found [3], expected ..."
  std::string inferred() {
    std::string text;
    try {
      for (const ValueType& type : types()) text += (text.empty() ? "" : "; ") + to_string(type, test_symbols());
    } catch (const OpError& e) {
      text = (e.place.empty() ? "" : e.place + ": ") + e.what + ": found " + e.found + ", expected " + e.expected;
      if (!e.hint.empty()) text += " (" + e.hint + ")";
      return text;
    }
    for (const LaunchCheck& check : checks)
      text += "; " + to_string(check.left, test_symbols()) + " == " + to_string(check.right, test_symbols());
    return text;
  }

  // The formula of a result at [i0, i1, ...].
  std::string formula(std::size_t output = 0) {
    const std::vector<ValueType> outputs = types();
    ExprPool pool(test_symbols());
    std::vector<IndexExpr> index;
    for (const Dim& extent : outputs[output].tensor.shape) index.push_back(IndexExpr::axis(pool.new_axis(extent)));
    Formula f(pool, operands, attributes, outputs);
    return to_string(pool, row().formula(f, output, index));
  }
};

inline std::string inferred(std::string op, const std::vector<std::string>& operands,
                            std::vector<Attribute> attributes = {}) {
  return TestCall(std::move(op), operands, std::move(attributes)).inferred();
}

inline std::string formula(std::string op, const std::vector<std::string>& operands,
                           std::vector<Attribute> attributes = {}) {
  return TestCall(std::move(op), operands, std::move(attributes)).formula();
}

}  // namespace fusec::test
