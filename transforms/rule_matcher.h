// Finds the algebraic rule that applies to a node whose operands are in a graph.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "transforms/algebraic_rules.h"

namespace fusec {

// What a rule puts in a node's place: a value of the graph, or else another node (its operands are in the graph).
struct Replacement {
  const AlgebraicRule* rule = nullptr;
  ValueId value = kNone;
  Node node;
  std::vector<NodeId> looked_through;  // nodes of the graph that the pattern found below
};

class RuleMatcher {
 public:
  RuleMatcher();

  // The first rule in the table's order that applies. New nodes' attributes are interned in the graph. A node whose
  // result must stay a node of its own (`keep_node`) is replaced by another node only.
  std::optional<Replacement> apply(Graph& graph, const Node& node, const TensorType& result, bool keep_node);

 private:
  struct RuleOfOp {
    const ParsedRule* rule;
    bool commutative;
  };
  const std::vector<RuleOfOp>& rules_for(const OpDef& op);
  std::optional<Replacement> apply_rule(const ParsedRule& rule, Graph& graph, const Node& node,
                                        const TensorType& result, bool keep_node);

  std::vector<ParsedRule> rules_;
  std::unordered_map<const OpDef*, std::vector<RuleOfOp>> by_op_;
  const OpDef* last_op_ = nullptr;  // that was asked for, and its rules
  const std::vector<RuleOfOp>* of_last_op_ = nullptr;
};

}  // namespace fusec
