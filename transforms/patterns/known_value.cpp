#include "transforms/patterns/known_value.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/evaluate/evaluate_node.h"
#include "ir/constant_data.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostValueSteps = 1 << 23;  // scalar operations: less than a tenth of a second
constexpr int kDeepestValue = 16;                  // nodes on a path from a constant to the value

std::optional<HostTensor> tensor_of(const Graph& graph, ValueId v, std::int64_t& steps, int depth) {
  if (graph.type(v).is_tuple) return std::nullopt;
  const TensorType& type = graph.tensor(v);
  if (!std::ranges::all_of(type.shape, [](const Dim& d) { return d.is_constant(); })) return std::nullopt;
  if (const Constant* constant = graph.constant_of(v)) {
    if (!constant->data) return std::nullopt;
    HostTensor tensor(type.dtype, concrete_shape(type.shape, {}));
    tensor.bytes = constant_bytes(*constant->data, type.dtype);
    return tensor;
  }
  const NodeId producer = graph.value(v).producer;
  if (producer == kNone || depth == 0) return std::nullopt;
  const Node& node = graph.nodes[producer];
  if (node.output_count != 1 || node.op->special != Special::kNone || !node.op->deterministic) return std::nullopt;
  std::map<ValueId, HostTensor> operands;
  for (const ValueId operand : node.inputs) {
    if (operand == kNone || operands.contains(operand)) continue;
    const Value::Kind kind = graph.value(operand).kind;
    if (kind == Value::Kind::kNumber) continue;
    std::optional<HostTensor> tensor;
    if (kind != Value::Kind::kDim) tensor = tensor_of(graph, operand, steps, depth - 1);
    if (!tensor) return std::nullopt;
    operands.emplace(operand, std::move(*tensor));
  }
  std::optional<std::vector<HostTensor>> results = evaluate_node_within(
      steps, graph, node, {}, [&](ValueId operand) -> const HostTensor& { return operands.at(operand); });
  if (!results) return std::nullopt;
  return std::move(results->front());
}

}  // namespace

ValueId known_value(Graph& graph, ValueId v, std::string name) {
  if (const Constant* constant = graph.constant_of(v); constant && constant->data) return v;
  std::int64_t steps = kMostValueSteps;
  const std::optional<HostTensor> tensor = tensor_of(graph, v, steps, kDeepestValue);
  if (!tensor) return kNone;
  const ValueId known = graph.add_constant(std::move(name), graph.tensor(v));
  graph.constants.back().data = std::make_shared<const std::vector<Scalar>>(constant_data(*tensor));
  return known;
}

}  // namespace fusec
