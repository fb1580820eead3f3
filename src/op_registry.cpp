// Registry of the public API: turns the description of a user's op into a row of the op table.
#include <algorithm>

#include "boundary.h"
#include "fusec/fusec.h"
#include "ir/infer.h"
#include "ir/ops/common.h"
#include "ir/parse_dim.h"
#include "ir/reserved_words.h"
#include "ir/scalar_expression.h"
#include "ir/spelling.h"
#include "type_info.h"

namespace fusec {
namespace {

std::vector<ValueType> inferred(const OpDescription& description, const OpCall& call) {
  if (!description.infer) {
    std::optional<TensorType> result;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      if (call.operands[i].kind != Operand::Kind::kTensor) continue;
      if (!result)
        result = call.tensor(i);
      else
        result->shape = ops::broadcast_shapes(call, result->shape, call.tensor(i).shape, ops::input_place(i));
    }
    if (!result) throw OpError{"inputs", "operands of " + description.name, "no tensor", "at least one", ""};
    return {*result};
  }
  std::vector<TensorInfo> operands;
  for (const Operand& o : call.operands) operands.push_back(type_info(o.type.tensor, call.symbols));
  const TensorInfo result = description.infer(operands);
  TensorType type;
  const auto dtype = parse_dtype(result.dtype);
  if (!dtype) throw OpError{"", "the dtype inferred for " + description.name, result.dtype, "a dtype", ""};
  type.dtype = *dtype;
  for (const Dimension& d : result.shape) {
    if (const auto* extent = std::get_if<std::int64_t>(&d.value))
      type.shape.emplace_back(*extent);
    else
      type.shape.push_back(parse_dim(std::get<std::string>(d.value), SymbolNames(call.symbols)));
  }
  return {type};
}

// Checks the op's expression. It is in no file, so errors name the op instead of a place.
void check_registered(const OpDescription& description, const OpCall& call) {
  try {
    check_expression(description.expression, call);
  } catch (OpError& error) {
    if (error.place == "attrs/expr") {
      error.place.clear();
      error.what = "the expression of " + description.name + ": " + error.what;
    }
    throw;
  }
}

// Checks the expression with scalar tensors for all operands, which finds errors that do not depend on the operands.
void check_alone(const OpDescription& description, const OpDef& row) {
  constexpr std::size_t kManyOperands = 1024;  // for ops with any number of operands
  const ValueType number = TensorType{};
  const std::vector<Operand> operands(std::min(operand_count(row).most, kManyOperands),
                                      {.kind = Operand::Kind::kTensor, .type = number});
  check_registered(description, {.operands = operands, .attributes = {}, .symbols = {}, .declared = {&number, 1}});
}

// The launcher's name is written into emitted source unchanged.
void check_launcher(const OpDescription& description) {
  if (description.launcher.empty()) return;
  const std::string_view fault = launcher_name_fault(description.launcher);
  if (fault.empty()) return;
  throw Error(ErrorKind::kUsage, {.what = "the launcher's name of op " + description.name,
                                  .found = in_quotes(description.launcher) + ", " + std::string(fault),
                                  .expected = std::string(kLauncherName)});
}

OpPattern pattern_of(const OpDescription& description) {
  if (const auto pattern = parse_op_pattern(description.pattern)) return *pattern;
  const std::vector<std::string> kinds(kOpPatternNames.begin(), kOpPatternNames.end());
  throw Error(ErrorKind::kUsage, {.what = "the pattern kind of op " + description.name,
                                  .found = in_quotes(description.pattern),
                                  .expected = "one of " + listed(kinds),
                                  .hint = did_you_mean(description.pattern, kOpPatternNames)});
}

OpDef row_of(const OpDescription& description) {
  OpDef row;
  row.name = description.name;
  row.family = "registered";
  row.summary = description.expression.empty() ? "a registered launcher" : description.expression;
  row.operands = description.operands;
  row.pattern = pattern_of(description);
  if (description.expression.empty()) {
    row.special = Special::kExternal;
    row.symbol = description.launcher;
    row.infer = [description](const OpCall& call) { return inferred(description, call); };
    return row;
  }
  check_alone(description, row);
  row.infer = [description](const OpCall& call) {
    std::vector<ValueType> results = inferred(description, call);
    check_registered(description, {call.operands, call.attributes, call.symbols, results, call.checks});
    return results;
  };
  row.formula = [text = description.expression](Formula& f, std::size_t, Formula::Index index) {
    return expression_value(text, f, index);
  };
  return row;
}

}  // namespace

Registry::Registry() : table_(std::make_shared<const OpTable>(OpTable::builtin())) {}

Registry Registry::with(OpDescription description) const {
  require_utf8(description.name, "an op's name");
  for (const std::string& operand : description.operands) require_utf8(operand, "an operand of op " + description.name);
  require_utf8(description.expression, "the expression of op " + description.name);
  check_launcher(description);
  return at_boundary([&] {
    Registry result;
    result.table_ = std::make_shared<const OpTable>(table_->with(row_of(description)));
    return result;
  });
}

std::vector<std::string> Registry::op_names() const {
  std::vector<std::string> names;
  for (const OpDef* row : table_->rows()) names.push_back(row->name);
  return names;
}

}  // namespace fusec
