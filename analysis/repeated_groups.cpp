#include "analysis/repeated_groups.h"

#include <algorithm>
#include <map>

#include "ir/attribute_text.h"

namespace fusec {
namespace {

// Writes the key that equal groups share, and collects the values that a group reads from outside, in order of first
// use.
class GroupKey {
 public:
  GroupKey(const Graph& graph, const FusionPlan& plan)
      : graph_(graph), plan_(plan), number_(graph.value_count(), kNone) {}

  std::vector<std::uint64_t> of(const FusionGroup& group, std::vector<ValueId>& taken) {
    key_ = {static_cast<std::uint64_t>(group.pattern), static_cast<std::uint64_t>(group.code)};
    std::vector<ValueId> numbered;
    std::uint32_t made = 0;
    for (const NodeId n : group.nodes) {
      const Node& node = graph_.nodes[n];
      key_.push_back(reinterpret_cast<std::uintptr_t>(node.op));
      key_.push_back(node.attributes);
      key_.push_back(node.inputs.size());
      for (const ValueId v : node.inputs) {
        if (v != kNone && number_[v] == kNone && is_tensor(v)) {
          number_[v] = kFirstTaken + static_cast<std::uint32_t>(taken.size());
          numbered.push_back(v);
          taken.push_back(v);
        }
        add_operand(v);
      }
      for (std::uint32_t i = 0; i < node.output_count; ++i) {
        const ValueId v = node.first_output + i;
        number_[v] = made++;
        numbered.push_back(v);
        key_.push_back(graph_.value(v).type);
      }
    }
    for (const ValueId v : numbered) number_[v] = kNone;
    return std::move(key_);
  }

 private:
  static constexpr std::uint32_t kFirstTaken = 1u << 31, kLiteral = kNone - 1;

  bool is_tensor(ValueId v) const {
    const Value::Kind kind = graph_.value(v).kind;
    return kind != Value::Kind::kNumber && kind != Value::Kind::kDim;
  }

  void add_operand(ValueId v) {
    if (v == kNone) return key_.push_back(kNone);
    if (!is_tensor(v)) {
      const bool is_number = graph_.value(v).kind == Value::Kind::kNumber;
      const std::string text = is_number ? json_text(graph_.number(v)) : to_string(graph_.dim(v), graph_.symbols);
      key_.push_back(kLiteral);
      return key_.push_back(literals_.emplace(text, literals_.size()).first->second);
    }
    key_.push_back(number_[v]);
    key_.push_back(graph_.value(v).type);
    key_.push_back(is_weight(v));
  }

  // Results of prepared groups count as weights.
  bool is_weight(ValueId v) const {
    const NodeId producer = graph_.value(v).producer;
    return producer == kNone ? graph_.value(v).kind == Value::Kind::kConstant
                             : plan_.groups[plan_.group_of[producer]].prepared;
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  std::vector<std::uint32_t> number_;  // by value: its number among the values made in the group, or taken by it
  std::map<std::string, std::size_t> literals_;
  std::vector<std::uint64_t> key_;
};

}  // namespace

RepeatedGroups repeated_groups(const Graph& graph, const FusionPlan& plan) {
  RepeatedGroups repeated;
  std::vector<std::uint32_t> item_of(plan.groups.size(), kOutside);
  std::map<std::vector<std::uint64_t>, std::uint32_t> kinds;
  GroupKey key(graph, plan);
  BlockItems items;
  items.operand_begin.push_back(0);
  for (GroupId g = 0; g < plan.groups.size(); ++g) {
    if (plan.groups[g].prepared) continue;
    item_of[g] = static_cast<std::uint32_t>(repeated.items.size());
    repeated.items.push_back(g);
    std::vector<ValueId> taken;
    const auto kind = kinds.emplace(key.of(plan.groups[g], taken), kinds.size()).first;
    items.kinds.push_back(kind->second);
    for (const ValueId v : taken) {
      const NodeId producer = graph.value(v).producer;
      items.operands.push_back(producer == kNone ? kOutside : item_of[plan.group_of[producer]]);
    }
    items.operand_begin.push_back(static_cast<std::uint32_t>(items.operands.size()));
  }
  repeated.blocks = repeated_blocks(items);
  return repeated;
}

}  // namespace fusec
