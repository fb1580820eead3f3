#include "analysis/constant_nodes.h"

#include <algorithm>

#include "ir/budget.h"

namespace fusec {
namespace {

bool may_run_early(const Graph& graph, const Node& node) {
  if (!node.fuse || !node.op->deterministic || has_symbols(graph.attributes(node))) return false;
  const Special special = node.op->special;
  if (special == Special::kExternal || special == Special::kCollective || special == Special::kTuple) return false;
  for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
    if (graph.type(v).is_tuple || has_symbols(graph.tensor(v).shape)) return false;
  return true;
}

}  // namespace

bool has_symbols(const Shape& shape) {
  return !std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_constant(); });
}

bool has_symbols(const Attributes& attributes) {
  return std::any_of(attributes.list().begin(), attributes.list().end(), [](const Attribute& a) {
    if (const auto* dim = std::get_if<Dim>(&a.value)) return !dim->is_constant();
    const auto* dims = std::get_if<std::vector<Dim>>(&a.value);
    return dims && has_symbols(*dims);
  });
}

std::vector<std::uint8_t> find_constant_nodes(const Graph& graph) {
  std::vector<std::uint8_t> constant(graph.nodes.size(), 0);
  std::vector<std::uint8_t> is_output(graph.value_count(), 0);
  for (const ValueId v : graph.outputs) is_output[v] = 1;
  const auto is_constant = [&](ValueId v) {
    if (v == kNone) return true;
    const Value& value = graph.value(v);
    switch (value.kind) {
      case Value::Kind::kInput:
        return false;
      case Value::Kind::kConstant:
        return !has_symbols(graph.tensor(v).shape);
      case Value::Kind::kNumber:
        return true;
      case Value::Kind::kDim:
        return graph.dim(v).is_constant();
      case Value::Kind::kResult:
        return constant[value.producer] != 0 && is_output[v] == 0;
    }
    return false;
  };
  for (NodeId n = 0; n < constant.size(); ++n) {
    count_step();
    const Node& node = graph.nodes[n];
    if (!std::ranges::all_of(node.inputs, is_constant) || !may_run_early(graph, node)) continue;
    bool seen = false;
    for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v) seen |= is_output[v] != 0;
    constant[n] = seen ? 0 : 1;
  }
  return constant;
}

bool is_made_of_constants(const Graph& graph, ValueId v) {
  constexpr std::size_t kMost = 64;
  std::vector<ValueId> found = {v};
  for (std::size_t at = 0; at < found.size(); ++at) {
    count_step();
    const Value& value = graph.value(found[at]);
    if (value.kind == Value::Kind::kInput || at == kMost) return false;
    if (value.kind == Value::Kind::kConstant && has_symbols(graph.tensor(found[at]).shape)) return false;
    if (value.kind == Value::Kind::kDim && !graph.dim(found[at]).is_constant()) return false;
    if (value.kind != Value::Kind::kResult) continue;
    const Node& node = graph.nodes[value.producer];
    if (!may_run_early(graph, node) || std::ranges::find(graph.outputs, found[at]) != graph.outputs.end()) return false;
    for (const ValueId operand : node.inputs)
      if (operand != kNone && std::ranges::find(found, operand) == found.end()) found.push_back(operand);
  }
  return true;
}

}  // namespace fusec
