// Type inference for one node: the op's own inference, then the rules for all tensors (ir/type_rules.h).
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// The result types of `op` on these operands (kNone: absent). `declared`: see OpCall. `node_name` names the node in
// launch checks. Throws OpError, also if shape arithmetic overflows.
std::vector<ValueType> infer_types(const Graph& graph, const OpDef& op, std::span<const ValueId> inputs,
                                   const Attributes& attributes, const std::vector<ValueType>& declared,
                                   const std::string& node_name, std::vector<LaunchCheck>* checks);

// The number of operands that an op takes. check_operand_count throws OpError if it does not take `count`.
struct OperandCount {
  std::size_t least = 0, most = 0;
};
OperandCount operand_count(const OpDef& op);
void check_operand_count(const OpDef& op, std::size_t count);
// Whether operand `position` may be absent.
bool is_optional(const OpDef& op, std::size_t position);

}  // namespace fusec
