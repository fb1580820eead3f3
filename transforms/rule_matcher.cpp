#include "transforms/rule_matcher.h"

#include <cmath>

#include "ir/budget.h"
#include "ir/constant_data.h"
#include "ir/error.h"
#include "ir/infer.h"

namespace fusec {
namespace {

bool is_number(const Graph& graph, ValueId v, double wanted) {
  const std::optional<Scalar> number = number_of(graph, v);
  return number && number->as_double() == wanted && std::signbit(number->as_double()) == std::signbit(wanted);
}

class Matching {
 public:
  Matching(const ParsedRule& rule, const Graph& graph, const Node& node, const TensorType& result)
      : rule_(rule), match_{graph, node, result} {}

  bool run() { return matches_node(rule_.pattern, match_.outer) && holds(rule_.rule->holds, match_); }
  const RuleMatch& match() const { return match_; }

  // The value that the pattern's part equal to `term` matched, if there is such a part.
  std::optional<ValueId> found(const RuleTerm& term) const {
    if (term.kind == RuleTerm::Kind::kVariable) return match_.variables[term.variable];
    for (const auto& [part, value] : parts_)
      if (*part == term) return value;
    return std::nullopt;
  }

 private:
  bool matches_node(const RuleTerm& term, const Node& node) {
    if (!is_meant(term.name, *node.op) || node.inputs.size() != term.operands.size()) return false;
    if (!rule_.rule->attributes && !match_.graph.attributes(node).empty()) return false;
    const RuleMatch before = match_;
    const std::size_t parts = parts_.size();
    if (match_operands(term, node.inputs)) return true;
    if (node.inputs.size() != 2 || !is_commutative(term.name)) return false;
    restore(before, parts);
    return match_operands(term, {node.inputs[1], node.inputs[0]});
  }

  bool match_operands(const RuleTerm& term, const std::vector<ValueId>& operands) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (!matches(term.operands[i], operands[i])) return false;
    return true;
  }

  bool matches(const RuleTerm& term, ValueId v) {
    if (v == kNone) return false;
    if (term.kind == RuleTerm::Kind::kNumber) return is_number(match_.graph, v, term.number);
    if (term.kind == RuleTerm::Kind::kVariable) {
      ValueId& bound = match_.variables[term.variable];
      if (bound == kNone) bound = v;
      return bound == v;
    }
    const NodeId producer = match_.graph.value(v).producer;
    if (producer == kNone) return false;
    const Node& node = match_.graph.nodes[producer];
    if (!node.fuse || node.pattern || node.output_count != 1) return false;
    match_.inner.push_back(producer);
    parts_.push_back({&term, v});
    return matches_node(term, node);
  }

  void restore(const RuleMatch& before, std::size_t parts) {
    match_.variables = before.variables;
    match_.inner = before.inner;
    parts_.resize(parts);
  }

  const ParsedRule& rule_;
  RuleMatch match_;
  std::vector<std::pair<const RuleTerm*, ValueId>> parts_;
};

// Whether type inference gives the node this type without a check at launch.
bool has_type(const Graph& graph, const Node& node, const Attributes& attributes, const TensorType& wanted) {
  std::vector<LaunchCheck> checks;
  try {
    const std::vector<ValueType> types = infer_types(graph, *node.op, node.inputs, attributes, {}, node.name, &checks);
    return types.size() == 1 && !types[0].is_tuple && types[0].tensor == wanted && checks.empty();
  } catch (const OpError&) {
    return false;
  }
}

// A cheap necessary condition for the operand to match the term.
bool may_be(const Graph& graph, const RuleTerm& term, ValueId v) {
  if (term.kind == RuleTerm::Kind::kVariable) return true;
  if (v == kNone) return false;
  const Value& value = graph.value(v);
  const OpDef* op = value.producer == kNone ? nullptr : graph.nodes[value.producer].op;
  if (term.kind == RuleTerm::Kind::kOp) return op && is_meant(term.name, *op);
  return value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kConstant || (op && op->name == "full");
}

// A cheap necessary condition for the rule to match, since most rules fail for most nodes.
bool may_match(const Graph& graph, const Node& node, const ParsedRule& rule, bool commutative) {
  const std::vector<RuleTerm>& terms = rule.pattern.operands;
  if (node.inputs.size() != terms.size() || (node.attributes != 0 && !rule.rule->attributes)) return false;
  const bool two_the_same = terms.size() == 2 && terms[0].kind == RuleTerm::Kind::kVariable && terms[0] == terms[1];
  if (two_the_same) return node.inputs[0] == node.inputs[1];
  bool in_order = true;
  for (std::size_t i = 0; i < terms.size(); ++i) in_order = in_order && may_be(graph, terms[i], node.inputs[i]);
  if (in_order) return true;
  return commutative && may_be(graph, terms[0], node.inputs[1]) && may_be(graph, terms[1], node.inputs[0]);
}

}  // namespace

RuleMatcher::RuleMatcher() {
  for (const AlgebraicRule& rule : algebraic_rules()) rules_.push_back(parse_rule(rule));
}

const std::vector<RuleMatcher::RuleOfOp>& RuleMatcher::rules_for(const OpDef& op) {
  if (&op == last_op_) return *of_last_op_;
  const auto [it, fresh] = by_op_.try_emplace(&op);
  if (fresh)
    for (const ParsedRule& rule : rules_)
      if (is_meant(rule.pattern.name, op))
        it->second.push_back({&rule, rule.pattern.operands.size() == 2 && is_commutative(rule.pattern.name)});
  last_op_ = &op;
  of_last_op_ = &it->second;
  return it->second;
}

std::optional<Replacement> RuleMatcher::apply(Graph& graph, const Node& node, const TensorType& result,
                                              bool keep_node) {
  for (const auto& [rule, commutative] : rules_for(*node.op)) {
    count_step();
    if (!may_match(graph, node, *rule, commutative)) continue;
    if (auto replacement = apply_rule(*rule, graph, node, result, keep_node)) return replacement;
  }
  return std::nullopt;
}

std::optional<Replacement> RuleMatcher::apply_rule(const ParsedRule& rule, Graph& graph, const Node& node,
                                                   const TensorType& result, bool keep_node) {
  Matching matching(rule, graph, node, result);
  if (!matching.run()) return std::nullopt;
  const RuleMatch& match = matching.match();
  std::optional<Attributes> attributes = Attributes();
  if (rule.rule->attributes) attributes = rule.rule->attributes(match);
  if (!attributes) return std::nullopt;
  Replacement replacement{.rule = rule.rule, .node = {}, .looked_through = match.inner};
  const RuleTerm& term = rule.replacement;
  const bool may_be_found = term.kind == RuleTerm::Kind::kVariable || !rule.rule->attributes;
  if (const auto value = may_be_found ? matching.found(term) : std::nullopt) {
    if (keep_node || graph.type(*value) != ValueType(result)) return std::nullopt;
    replacement.value = *value;
    return replacement;
  }
  if (term.kind != RuleTerm::Kind::kOp) throw InternalError("a rule's replacement is a number");
  replacement.node = node;
  replacement.node.op = graph.table().find(term.name);
  if (!replacement.node.op) throw InternalError("a rule makes an unknown op: " + term.name);
  replacement.node.inputs.clear();
  for (const RuleTerm& operand : term.operands) {
    count_step();
    const auto value = matching.found(operand);
    if (!value) throw InternalError("a rule's replacement is nested: " + std::string(rule.rule->text));
    replacement.node.inputs.push_back(*value);
  }
  if (!has_type(graph, replacement.node, *attributes, result)) return std::nullopt;
  replacement.node.attributes = graph.intern(std::move(*attributes));
  return replacement;
}

}  // namespace fusec
