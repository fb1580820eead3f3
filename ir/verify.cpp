#include "ir/verify.h"

#include <fmt/format.h>

#include <unordered_set>

#include "ir/alias_order.h"
#include "ir/budget.h"
#include "ir/error.h"
#include "ir/infer.h"
#include "ir/spelling.h"
#include "ir/symbol_solution.h"
#include "ir/type_rules.h"

namespace fusec {
namespace {

// The checks throw the first problem.
struct Problem {
  std::string text;
};

template <class... Args>
[[noreturn]] void problem(fmt::format_string<Args...> format, Args&&... args) {
  throw Problem{fmt::format(format, std::forward<Args>(args)...)};
}

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void check() {
    check_values();
    for (NodeId n = 0; n < graph_.nodes.size(); ++n) check_structure(n);
    for (const Node& node : graph_.nodes) check_types(node);
    check_interface();
    check_aliases();
  }

 private:
  void check_values() {
    std::unordered_set<std::string_view> names;
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      count_step();
      const Value& value = graph_.value(v);
      if (value.type >= graph_.type_count()) problem("value {} has no type", v);
      const bool named = value.kind != Value::Kind::kNumber && value.kind != Value::Kind::kDim;
      if (named && value.name.empty()) problem("value {} has no name", v);
      if (named && !names.insert(value.name).second) problem("two values are called {}", in_quotes(value.name));
      check_definition(v);
    }
  }

  void check_definition(ValueId v) {
    const Value& value = graph_.value(v);
    switch (value.kind) {
      case Value::Kind::kInput:
        if (value.index >= graph_.inputs.size() || graph_.inputs[value.index] != v)
          problem("input {} is not in the list of inputs", in_quotes(value.name));
        break;
      case Value::Kind::kConstant:
        if (value.index >= graph_.constants.size() || graph_.constants[value.index].value != v)
          problem("constant {} is not in the list of constants", in_quotes(value.name));
        break;
      case Value::Kind::kResult:
        // A pass may have dropped the producer; check_structure makes sure that nothing uses the value then.
        if (value.producer != kNone && value.producer < graph_.nodes.size()) {
          const Node& node = graph_.nodes[value.producer];
          if (value.index >= node.output_count || node.first_output + value.index != v)
            problem("value {} is not the result of node {} that it says it is", in_quotes(value.name),
                    in_quotes(node.name));
        }
        break;
      case Value::Kind::kNumber:
      case Value::Kind::kDim:
        break;
    }
  }

  void check_available(ValueId v, NodeId before, const std::string& user) {
    if (v >= graph_.value_count()) problem("{} uses value {}, which is not there", user, v);
    const Value& value = graph_.value(v);
    if (value.kind != Value::Kind::kResult) return;
    if (value.producer >= graph_.nodes.size())
      problem("{} uses {}, which no node produces", user, in_quotes(value.name));
    if (value.producer >= before)
      problem("{} uses {} before node {} produces it", user, in_quotes(value.name),
              in_quotes(graph_.nodes[value.producer].name));
  }

  void check_structure(NodeId n) {
    const Node& node = graph_.nodes[n];
    const std::string user = "node " + in_quotes(node.name);
    if (node.name.empty()) problem("node {} has no name", n);
    if (!node_names_.insert(node.name).second) problem("two nodes are called {}", in_quotes(node.name));
    if (!node.op) problem("{} has no op", user);
    if (node.op != graph_.table().find(node.op->name) && !node.op->custom)
      problem("{} has an op {} that is not in the graph's table", user, in_quotes(node.op->name));
    if (node.output_count == 0) problem("{} has no results", user);
    for (std::uint32_t i = 0; i < node.output_count; ++i) {
      count_step();
      const ValueId v = node.first_output + i;
      if (v >= graph_.value_count() || graph_.value(v).kind != Value::Kind::kResult || graph_.value(v).producer != n)
        problem("result {} of {} is not a value that it produces", i, user);
    }
    for (const ValueId v : node.inputs)
      if (v != kNone) check_available(v, n, user);
  }

  void check_types(const Node& node) {
    const std::string user = "node " + in_quotes(node.name);
    const Attributes& attributes = graph_.attributes(node);
    if (!node.op->custom) check_attributes(*node.op, attributes, user);
    const std::vector<ValueType> types = graph_.result_types(node);
    std::vector<ValueType> inferred;
    try {
      check_operand_count(*node.op, node.inputs.size());
      inferred = infer_types(graph_, *node.op, node.inputs, attributes, types, node.name, &undecided_);
    } catch (const OpError& error) {
      problem("{}: {}{}: found {}, expected {}", user, error.place.empty() ? "" : error.place + ": ", error.what,
              error.found, error.expected);
    }
    undecided_.clear();
    if (inferred.size() != types.size()) problem("{} has {} results, not {}", user, inferred.size(), types.size());
    for (std::size_t i = 0; i < types.size(); ++i)
      if (!agree(types[i], inferred[i]))
        problem("result {} of {} is {}, not {}", i, user, to_string(inferred[i], graph_.symbols),
                to_string(types[i], graph_.symbols));
  }

  bool agree(const ValueType& a, const ValueType& b) {
    if (a == b) return true;
    return !a.is_tuple && !b.is_tuple && types_agree(a.tensor, b.tensor, graph_.symbols, nullptr, "");
  }

  void check_attributes(const OpDef& op, const Attributes& attributes, const std::string& user) {
    for (const Attribute& a : attributes.list()) {
      count_step();
      bool known = false;
      for (const AttributeSpec& spec : op.attributes) known |= spec.name == a.name;
      if (!known) problem("{}: {} has no attribute {}", user, op.name, in_quotes(a.name));
    }
    for (const AttributeSpec& spec : op.attributes)
      if (spec.required && !attributes.has(spec.name)) problem("{}: attribute {} is missing", user, spec.name);
  }

  void check_interface() {
    const auto end = static_cast<NodeId>(graph_.nodes.size());
    for (const ValueId v : graph_.inputs)
      if (v >= graph_.value_count() || graph_.value(v).kind != Value::Kind::kInput) problem("value {} is no input", v);
    for (const Constant& constant : graph_.constants) {
      count_step();
      if (constant.value >= graph_.value_count() || graph_.value(constant.value).kind != Value::Kind::kConstant)
        problem("value {} is no constant", constant.value);
      if (!constant.data) continue;
      const auto count = element_count(graph_.tensor(constant.value).shape);
      if (!count || !count->is(static_cast<std::int64_t>(constant.data->size())))
        problem("constant {} has {} elements", in_quotes(graph_.value(constant.value).name), constant.data->size());
    }
    if (graph_.outputs.empty()) problem("the graph has no outputs");
    for (const ValueId v : graph_.outputs) {
      count_step();
      check_available(v, end, "the graph's output");
      const Value::Kind kind = graph_.value(v).kind;
      if (kind == Value::Kind::kNumber || kind == Value::Kind::kDim) problem("an output of the graph is a number");
    }
    const std::vector<std::uint32_t> undetermined = solve_symbols(graph_).undetermined;
    if (!undetermined.empty())
      problem("no input determines symbol {}", in_quotes(graph_.symbols[undetermined.front()].name));
  }

  void check_aliases() {
    for (const Alias& alias : graph_.aliases) {
      count_step();
      check_available(alias.output, static_cast<NodeId>(graph_.nodes.size()), "an alias");
      if (alias.input >= graph_.value_count() || graph_.value(alias.input).kind != Value::Kind::kInput)
        problem("an alias of {} names no input", in_quotes(graph_.value(alias.output).name));
      if (!types_agree(graph_.tensor(alias.output), graph_.tensor(alias.input), graph_.symbols, nullptr, ""))
        problem("the alias of {} has another type", in_quotes(graph_.value(alias.output).name));
    }
    if (!graph_.aliases.empty() && !order_for_aliases(graph_, graph_.aliases))
      problem("no order of execution allows the aliases");
  }

  const Graph& graph_;
  std::unordered_set<std::string_view> node_names_;
  std::vector<LaunchCheck> undecided_;
};

}  // namespace

std::string first_problem(const Graph& graph) {
  try {
    Verifier(graph).check();
    return "";
  } catch (const Problem& p) {
    return p.text;
  }
}

void verify(const Graph& graph, const std::string& pass) {
  const std::string text = first_problem(graph);
  if (!text.empty()) throw InternalError("after " + pass + ": " + text);
}

}  // namespace fusec
