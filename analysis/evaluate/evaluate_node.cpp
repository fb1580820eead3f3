#include "analysis/evaluate/evaluate_node.h"

#include <fmt/format.h>

#include <limits>

#include "analysis/evaluate/evaluate_formula.h"
#include "analysis/evaluate/special_ops.h"
#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {
namespace {

using TensorOf = std::function<const HostTensor&(ValueId)>;

std::optional<HostTensor> evaluate_result(std::int64_t& steps_left, const Graph& graph, const Node& node,
                                          std::uint32_t output, const std::vector<std::int64_t>& symbols,
                                          const TensorOf& tensor_of, Precision precision) {
  const TensorType& type = graph.tensor(node.first_output + output);
  ExprPool pool(graph.symbols);
  std::vector<std::uint32_t> axes;
  std::vector<IndexExpr> index;
  for (const Dim& dim : type.shape) {
    count_step();
    axes.push_back(pool.new_axis(dim));
    index.push_back(IndexExpr::axis(axes.back()));
  }
  ExprId expr = build_formula(pool, graph, node, output, index);
  expr = pool.convert(expr, compute_type(type.dtype));
  return evaluate_formula_within(steps_left, pool, expr, axes, type.dtype, symbols, tensor_of, precision);
}

HostTensor number_tensor(const Graph& graph, ValueId v, const std::vector<std::int64_t>& symbols) {
  HostTensor tensor(graph.tensor(v).dtype, {});
  if (graph.value(v).kind == Value::Kind::kDim)
    tensor.set_integer(0, evaluate(graph.dim(v), [&](Variable s) { return symbols.at(s.id); }));
  else if (graph.number(v).category == Category::kFloat)
    tensor.set_real(0, graph.number(v).real);
  else
    tensor.set_integer(0, graph.number(v).integer);
  return tensor;
}

// Scans, sorts and scatters visit each element several times.
constexpr std::int64_t kStepsPerElement = 16;

std::optional<std::vector<HostTensor>> evaluate_without_formula(std::int64_t& steps_left, const Graph& graph,
                                                                const Node& node,
                                                                const std::vector<std::int64_t>& symbols,
                                                                const TensorOf& tensor_of, Precision precision) {
  std::vector<HostTensor> numbers;
  numbers.reserve(node.inputs.size());
  std::vector<const HostTensor*> operands;
  for (const ValueId v : node.inputs) {
    count_step();
    if (v == kNone) {
      operands.push_back(nullptr);
    } else if (const Value::Kind kind = graph.value(v).kind;
               kind == Value::Kind::kNumber || kind == Value::Kind::kDim) {
      numbers.push_back(number_tensor(graph, v, symbols));
      operands.push_back(&numbers.back());
    } else {
      operands.push_back(&tensor_of(v));
    }
  }
  std::vector<HostTensor> results;
  for (std::uint32_t o = 0; o < node.output_count; ++o) {
    count_step();
    const TensorType& type = graph.tensor(node.first_output + o);
    results.emplace_back(held_dtype(type.dtype, precision), concrete_shape(type.shape, symbols));
  }
  std::int64_t elements = 0;
  for (const HostTensor* operand : operands) elements += operand ? operand->size() : 0;
  for (const HostTensor& result : results) elements += result.size();
  if (elements > steps_left / kStepsPerElement) return std::nullopt;
  steps_left -= elements * kStepsPerElement;
  evaluate_special(*node.op, graph.attributes(node), operands, results);
  return results;
}

}  // namespace

std::vector<std::int64_t> concrete_shape(const Shape& shape, const std::vector<std::int64_t>& symbols) {
  std::vector<std::int64_t> extents;
  for (const Dim& dim : shape) extents.push_back(evaluate(dim, [&](Variable v) { return symbols.at(v.id); }));
  return extents;
}

std::optional<std::vector<HostTensor>> evaluate_node_within(std::int64_t& steps_left, const Graph& graph,
                                                            const Node& node, const std::vector<std::int64_t>& symbols,
                                                            const TensorOf& tensor_of, Precision precision) {
  if (node.op->special != Special::kNone)
    return evaluate_without_formula(steps_left, graph, node, symbols, tensor_of, precision);
  if (!node.op->formula)
    throw Error(ErrorKind::kInput,
                fmt::format("node \"{}\": the reference device cannot evaluate op {}", node.name, node.op->name));
  std::vector<HostTensor> results;
  for (std::uint32_t o = 0; o < node.output_count; ++o) {
    std::optional<HostTensor> result = evaluate_result(steps_left, graph, node, o, symbols, tensor_of, precision);
    if (!result) return std::nullopt;
    results.push_back(std::move(*result));
  }
  return results;
}

std::vector<HostTensor> evaluate_node(const Graph& graph, const Node& node, const std::vector<std::int64_t>& symbols,
                                      const TensorOf& tensor_of, Precision precision) {
  std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  return *evaluate_node_within(unlimited, graph, node, symbols, tensor_of, precision);
}

}  // namespace fusec
