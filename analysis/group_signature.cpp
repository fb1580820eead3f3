#include "analysis/group_signature.h"

#include <algorithm>
#include <bit>

#include "ir/tuple_field.h"

namespace fusec {

std::size_t GroupKeyHash::operator()(const GroupKey& key) const {
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const std::uint64_t word : key) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

const GroupKey& GroupSignatures::of(std::span<const NodeId> nodes, std::span<const ValueId> outputs) {
  if (stamp_.empty()) {
    operand_number_.resize(graph_.value_count(), 0);
    stamp_.resize(graph_.value_count(), 0);
  }
  key_.clear();
  operands_.clear();
  ++now_;
  std::size_t next_output = 0;
  for (const NodeId n : nodes) {
    const Node& node = graph_.nodes[n];
    key_.push_back(std::bit_cast<std::uintptr_t>(node.op));
    key_.push_back(std::uint64_t{node.attributes} << 32 | std::uint64_t{node.feeds_quantization} << 31 |
                   std::uint64_t{node.inputs.size()} << 8 | node.output_count);
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) {
      const bool is_output = next_output < outputs.size() && outputs[next_output] == v;
      next_output += is_output ? 1 : 0;
      key_.push_back(std::uint64_t{graph_.value(v).type} << 1 | std::uint64_t{is_output});
    }
    for (const ValueId v : node.inputs) write_operand(nodes, node, v);
  }
  return key_;
}

// A place in the list, a number in order of first use, or the value's id where lowering looks at more than its type: a
// dimension, a constant that may become a literal, what a tuple holds, and a field of a tuple, behind which is another
// value.
void GroupSignatures::write_operand(std::span<const NodeId> nodes, const Node& reader, ValueId v) {
  constexpr std::uint64_t kInside = std::uint64_t{1} << 62, kNumber = std::uint64_t{2} << 62,
                          kItself = std::uint64_t{3} << 62;
  if (v == kNone) {
    key_.push_back(kItself | v);
    return;
  }
  const Value& value = graph_.value(v);
  if (value.kind == Value::Kind::kNumber) {
    const Scalar& number = graph_.number(v);
    key_.push_back(kNumber | static_cast<std::uint64_t>(number.category));
    key_.push_back(std::bit_cast<std::uint64_t>(number.as_double()));
    key_.push_back(static_cast<std::uint64_t>(number.integer));
    return;
  }
  if (value.kind == Value::Kind::kResult) {
    const auto at = std::ranges::lower_bound(nodes, value.producer);
    if (at != nodes.end() && *at == value.producer) {
      key_.push_back(kInside | static_cast<std::uint64_t>(at - nodes.begin()) << 16 | value.index);
      return;
    }
  }
  const Constant* constant = graph_.constant_of(v);
  const bool of_tuple = reader.op->special == Special::kTuple || resolve_tuple(graph_, v) != v;
  if (value.kind == Value::Kind::kDim || (constant && constant->data) || of_tuple) {
    key_.push_back(kItself | graph_number_ << 32 | v);
    return;
  }
  if (stamp_[v] != now_) {
    stamp_[v] = now_;
    operand_number_[v] = static_cast<std::uint32_t>(operands_.size());
    operands_.push_back(v);
  }
  key_.push_back(std::uint64_t{value.type} << 32 | operand_number_[v]);
}

NodeId GroupRenaming::node(NodeId n) const {
  const auto at = std::ranges::lower_bound(from_.nodes, n);
  return to_.nodes[static_cast<std::size_t>(at - from_.nodes.begin())];
}

ValueId GroupRenaming::value(ValueId v) const {
  const Value& value = graph_.value(v);
  if (value.kind == Value::Kind::kResult && std::ranges::binary_search(from_.nodes, value.producer))
    return graph_.nodes[node(value.producer)].first_output + value.index;
  const auto at = std::ranges::find(from_.operands, v);
  return at == from_.operands.end() ? v : to_.operands[static_cast<std::size_t>(at - from_.operands.begin())];
}

}  // namespace fusec
