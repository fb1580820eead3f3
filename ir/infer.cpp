#include "ir/infer.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

#include "ir/ops/movement.h"
#include "ir/spelling.h"
#include "ir/type_rules.h"

namespace fusec {
namespace {

constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

void check_tensors(const ValueType& type, const Symbols& symbols, std::vector<LaunchCheck>* checks,
                   const std::string& what) {
  if (!type.is_tuple) return check_type(type.tensor, symbols, checks, what);
}

}  // namespace

std::vector<ValueType> infer_types(const Graph& graph, const OpDef& op, std::span<const ValueId> inputs,
                                   const Attributes& attributes, const std::vector<ValueType>& declared,
                                   const std::string& node_name, std::vector<LaunchCheck>* checks) {
  // An Operand copies its type. Doing so for each get_item of a tuple with many fields would take quadratic time.
  if (op.special == Special::kTuple && op.name == "get_item" && inputs.size() == 1 && inputs[0] != kNone &&
      graph.type(inputs[0]).is_tuple) {
    const std::vector<ValueType>& fields = graph.type(inputs[0]).fields;
    return {fields[ops::field_of(attributes, fields.size())]};
  }
  std::vector<Operand> operands;
  operands.reserve(inputs.size());
  for (const ValueId v : inputs) operands.push_back(graph.operand(v));
  try {
    std::vector<ValueType> types = op.infer({operands, attributes, graph.symbols, declared, checks});
    std::string what;
    if (checks && !graph.symbols.empty()) what = "the result of " + in_quotes(node_name);
    for (const ValueType& type : types) check_tensors(type, graph.symbols, checks, what);
    return types;
  } catch (const std::overflow_error&) {
    throw OpError{"", "the shape of a result overflows 63 bits", "", "dimensions below 2^63", ""};
  } catch (const std::domain_error&) {
    throw OpError{"", "the shape of a result divides by 0", "", "a divisor other than 0", ""};
  }
}

OperandCount operand_count(const OpDef& op) {
  OperandCount count;
  std::size_t position = 0;
  for (const std::string& name : op.operands) {
    ++position;
    const char mark = name.empty() ? ' ' : name.back();
    if (mark == '*' || mark == '+') count.most = kAnyNumber;
    if (mark != '*' && mark != '?') count.least = position;
  }
  count.most = std::max(count.most, position);
  return count;
}

void check_operand_count(const OpDef& op, std::size_t count) {
  const OperandCount allowed = operand_count(op);
  if (count >= allowed.least && count <= allowed.most) return;
  std::string expected = std::to_string(allowed.least);
  if (allowed.most == kAnyNumber)
    expected += " or more";
  else if (allowed.most > allowed.least)
    expected += fmt::format(" to {}", allowed.most);
  std::string names;
  for (const std::string& name : op.operands) names += (names.empty() ? " (" : ", ") + name;
  if (!names.empty()) expected += names + ")";
  throw OpError{"inputs", "wrong number of operands of " + op.name, std::to_string(count), expected, ""};
}

bool is_optional(const OpDef& op, std::size_t position) {
  if (op.custom) return true;
  if (!op.operands.empty() && position >= op.operands.size() - 1 && op.operands.back().ends_with("?*")) return true;
  return position < op.operands.size() && op.operands[position].ends_with('?');
}

}  // namespace fusec
