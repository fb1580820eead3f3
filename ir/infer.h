// Type inference for one node: the op's own, and the rules that all tensors obey.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fusec {

// The types of the results of `op` on these operands (kNone: absent). `declared` as OpCall has it; `node_name` names
// the node in launch checks. Throws OpError, also where the arithmetic of shapes overflows.
std::vector<ValueType> infer_types(const Graph& graph, const OpDef& op, std::span<const ValueId> inputs,
                                   const Attributes& attributes, const std::vector<ValueType>& declared,
                                   const std::string& node_name, std::vector<LaunchCheck>* checks);

// How many operands an op takes. Throws OpError where `count` is not among them.
struct OperandCount {
  std::size_t least = 0, most = 0;
};
OperandCount operand_count(const OpDef& op);
void check_operand_count(const OpDef& op, std::size_t count);
// May operand `position` be absent?
bool is_optional(const OpDef& op, std::size_t position);

}  // namespace fusec
