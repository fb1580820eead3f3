// Finds the algebraic rule (transforms/algebraic_rules.h) that applies to a node.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "transforms/algebraic_rules.h"

namespace fusec {

// A rule's replacement of a node: a value of the graph, or else a new node with operands from the graph.
struct Replacement {
  const AlgebraicRule* rule = nullptr;
  ValueId value = kNone;
  Node node;
  std::vector<NodeId> looked_through;  // inner nodes that the pattern matched
};

class RuleMatcher {
 public:
  RuleMatcher();

  // Applies the first rule of the table that matches; nothing if none does. Interns a new node's attributes in the
  // graph. With `keep_node` the replacement is always a node, never a value.
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
  const OpDef* last_op_ = nullptr;  // cache of the last lookup: the op and its rules
  const std::vector<RuleOfOp>* of_last_op_ = nullptr;
};

}  // namespace fusec
