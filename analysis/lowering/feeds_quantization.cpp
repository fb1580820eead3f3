#include "analysis/lowering/feeds_quantization.h"

#include <algorithm>
#include <array>

#include "ir/budget.h"
#include "ir/constant_data.h"
#include "ir/type.h"

namespace fusec {

namespace {

bool is_float_tensor(const Graph& graph, ValueId v) {
  return v != kNone && !graph.type(v).is_tuple && is_float(graph.tensor(v).dtype);
}

// Returns whether some result is not a float of at least 16 bits: a comparison, an index, a quantized value.
bool result_is_quantized(const Graph& graph, const Node& node) {
  for (ValueId v = node.first_output; v < node.first_output + node.output_count; ++v)
    if (!graph.type(v).is_tuple && (!is_float_tensor(graph, v) || bits(graph.tensor(v).dtype) < 16)) return true;
  return false;
}

// Returns whether the node compares with 0. Rounding keeps the sign, so such a comparison needs no rounded operand.
bool asks_for_sign(const Graph& graph, const Node& node) {
  constexpr std::array kOrders{"lt", "le", "gt", "ge"};
  if (std::ranges::find(kOrders, node.op->name) == kOrders.end()) return false;
  return std::ranges::any_of(node.inputs, [&](ValueId v) {
    const std::optional<Scalar> number = number_of(graph, v);
    return number && number->as_double() == 0;
  });
}

}  // namespace

bool quantizes(const Graph& graph, const Node& node) {
  constexpr std::array kSteps{"round", "floor", "ceil", "trunc", "remainder", "fmod"};
  if (std::ranges::none_of(node.inputs, [&](ValueId v) { return is_float_tensor(graph, v); })) return false;
  if (asks_for_sign(graph, node)) return false;
  return result_is_quantized(graph, node) || std::ranges::find(kSteps, node.op->name) != kSteps.end() ||
         (node.op->name == "div" && graph.attributes(node).has("rounding_mode"));
}

void mark_feeds_quantization(Graph& graph) {
  for (auto n = static_cast<NodeId>(graph.nodes.size()); n-- > 0;) {
    count_step();
    Node& node = graph.nodes[n];
    if (!node.feeds_quantization && !quantizes(graph, node)) continue;
    for (const ValueId v : node.inputs) {
      if (v == kNone || graph.value(v).kind != Value::Kind::kResult || graph.type(v).is_tuple) continue;
      const DType dtype = graph.tensor(v).dtype;
      if (is_float(dtype) && bits(dtype) > 16) graph.nodes[graph.value(v).producer].feeds_quantization = true;
    }
  }
}

}  // namespace fusec
