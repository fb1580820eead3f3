#include "analysis/evaluate/evaluate_node.h"

#include <fmt/format.h>

#include "analysis/evaluate/evaluate_formula.h"
#include "analysis/evaluate/special_ops.h"
#include "ir/error.h"

namespace fusec {
namespace {

using TensorOf = std::function<const HostTensor&(ValueId)>;

HostTensor evaluate_result(const Graph& graph, const Node& node, std::uint32_t output,
                           const std::vector<std::int64_t>& symbols, const TensorOf& tensor_of) {
  const TensorType& type = graph.tensor(node.first_output + output);
  ExprPool pool(graph.symbols);
  std::vector<std::uint32_t> axes;
  std::vector<IndexExpr> index;
  for (const Dim& dim : type.shape) {
    axes.push_back(pool.new_axis(dim));
    index.push_back(IndexExpr::axis(axes.back()));
  }
  ExprId expr = build_formula(pool, graph, node, output, index);
  expr = pool.convert(expr, compute_type(type.dtype));
  return evaluate_formula(pool, expr, axes, type.dtype, symbols, tensor_of);
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

std::vector<HostTensor> evaluate_without_formula(const Graph& graph, const Node& node,
                                                 const std::vector<std::int64_t>& symbols, const TensorOf& tensor_of) {
  std::vector<HostTensor> numbers;
  numbers.reserve(node.inputs.size());
  std::vector<const HostTensor*> operands;
  for (const ValueId v : node.inputs) {
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
    const TensorType& type = graph.tensor(node.first_output + o);
    results.emplace_back(type.dtype, concrete_shape(type.shape, symbols));
  }
  evaluate_special(*node.op, graph.attributes(node), operands, results);
  return results;
}

}  // namespace

std::vector<std::int64_t> concrete_shape(const Shape& shape, const std::vector<std::int64_t>& symbols) {
  std::vector<std::int64_t> extents;
  for (const Dim& dim : shape) extents.push_back(evaluate(dim, [&](Variable v) { return symbols.at(v.id); }));
  return extents;
}

std::vector<HostTensor> evaluate_node(const Graph& graph, const Node& node, const std::vector<std::int64_t>& symbols,
                                      const TensorOf& tensor_of) {
  if (node.op->special != Special::kNone) return evaluate_without_formula(graph, node, symbols, tensor_of);
  if (!node.op->formula)
    throw Error(ErrorKind::kInput,
                fmt::format("node \"{}\": the reference device cannot evaluate op {}", node.name, node.op->name));
  std::vector<HostTensor> results;
  for (std::uint32_t o = 0; o < node.output_count; ++o)
    results.push_back(evaluate_result(graph, node, o, symbols, tensor_of));
  return results;
}

}  // namespace fusec
