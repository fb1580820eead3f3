#include "runtime/reference/reference.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "analysis/evaluate/evaluate_node.h"
#include "ir/constant_data.h"
#include "ir/error.h"
#include "ir/safetensors.h"
#include "ir/symbol_values.h"

namespace fusec {
namespace {

void require_type(const std::string& value_name, const HostTensor& got, DType dtype,
                  const std::vector<std::int64_t>& shape) {
  if (got.dtype == dtype && got.shape == shape) return;
  auto text = [](DType d, const std::vector<std::int64_t>& s) {
    return fmt::format("{}[{}]", name(d), fmt::join(s, ", "));
  };
  throw Error(ErrorKind::kInput, {.what = fmt::format("tensor \"{}\"", value_name),
                                  .found = text(got.dtype, got.shape),
                                  .expected = text(dtype, shape)});
}

// A value while the graph runs: a tensor, or the fields of a tuple.
struct Held {
  std::shared_ptr<const HostTensor> tensor;
  std::vector<Held> fields;
};

class Run {
 public:
  Run(const Graph& graph, const TensorMap& tensors)
      : graph_(graph), symbols_(solve_symbols(graph, tensors)), held_(graph.value_count()) {
    for (const ValueId v : graph.inputs) hold_given(v, tensors.at(graph.value(v).name));
    for (const Constant& constant : graph.constants) {
      const auto given = tensors.find(graph.value(constant.value).name);
      if (given != tensors.end())
        hold_given(constant.value, given->second);
      else
        held_[constant.value].tensor = std::make_shared<HostTensor>(constant_tensor(graph, constant));
    }
    check_dimensions();
  }

  void run() {
    for (const Node& node : graph_.nodes) run_node(node);
  }

  const Held& held(ValueId v) const { return held_[v]; }

 private:
  void hold_given(ValueId v, const HostTensor& tensor) {
    const TensorType& type = graph_.tensor(v);
    require_type(graph_.value(v).name, tensor, type.dtype, concrete_shape(type.shape, symbols_));
    held_[v].tensor = std::make_shared<HostTensor>(tensor);
  }

  void check_dimensions() const {
    auto value_of = [&](Variable v) { return symbols_.at(v.id); };
    for (const LaunchCheck& check : graph_.checks) {
      const std::int64_t left = evaluate(check.left, value_of), right = evaluate(check.right, value_of);
      if (left != right)
        throw Error(ErrorKind::kInput,
                    {.what = check.what, .found = std::to_string(left), .expected = std::to_string(right)});
    }
  }

  void run_node(const Node& node) {
    if (node.op->special == Special::kTuple) return bundle(node);
    std::vector<HostTensor> results =
        evaluate_node(graph_, node, symbols_, [&](ValueId v) -> const HostTensor& { return *held_[v].tensor; });
    for (std::uint32_t o = 0; o < node.output_count; ++o)
      held_[node.first_output + o].tensor = std::make_shared<HostTensor>(std::move(results[o]));
  }

  void bundle(const Node& node) {
    Held& result = held_[node.first_output];
    if (node.op->name == "get_item") {
      const auto& fields = held_[node.inputs[0]].fields;
      std::int64_t index = graph_.attributes(node).integer("index");
      if (index < 0) index += static_cast<std::int64_t>(fields.size());
      result = fields.at(static_cast<std::size_t>(index));
      return;
    }
    for (const ValueId v : node.inputs) result.fields.push_back(held_[v]);
  }

  const Graph& graph_;
  std::vector<std::int64_t> symbols_;
  std::vector<Held> held_;
};

}  // namespace

std::vector<std::int64_t> solve_symbols(const Graph& graph, const TensorMap& tensors) {
  std::vector<const HostTensor*> given;
  for (const ValueId v : graph.inputs) {
    const std::string& value_name = graph.value(v).name;
    const auto it = tensors.find(value_name);
    if (it == tensors.end())
      throw Error(ErrorKind::kInput, fmt::format("the tensor for input \"{}\" is missing", value_name));
    if (it->second.shape.size() != graph.tensor(v).rank())
      throw Error(ErrorKind::kInput, {.what = fmt::format("rank of input \"{}\"", value_name),
                                      .found = std::to_string(it->second.shape.size()),
                                      .expected = std::to_string(graph.tensor(v).rank())});
    given.push_back(&it->second);
  }
  return symbol_values(graph, [&](std::size_t input, std::size_t dimension) { return given[input]->shape[dimension]; });
}

HostTensor constant_tensor(const Graph& graph, const Constant& constant) {
  const TensorType& type = graph.tensor(constant.value);
  const std::string& value_name = graph.value(constant.value).name;
  const std::vector<std::int64_t> shape = concrete_shape(type.shape, {});
  HostTensor tensor(type.dtype, shape);
  if (constant.data) {
    tensor.bytes = constant_bytes(*constant.data, type.dtype);
    return tensor;
  }
  if (constant.safetensors_file.empty())
    throw Error(ErrorKind::kInput, fmt::format("the tensor for constant \"{}\" is missing", value_name));
  const auto path = std::filesystem::path(graph.directory) / constant.safetensors_file;
  const SafetensorsFile file(path.string());
  const SafetensorsFile::Tensor* stored = file.find(constant.safetensors_tensor);
  const StoredType expected = stored_type(type.dtype, shape);
  if (!stored || stored->type != expected)
    throw Error(ErrorKind::kInput, {.file = path.string(),
                                    .what = fmt::format("tensor \"{}\"", constant.safetensors_tensor),
                                    .found = stored ? to_string(stored->type) : "nothing",
                                    .expected = to_string(expected)});
  std::memcpy(tensor.bytes.data(), stored->bytes.data(), std::min(stored->bytes.size(), tensor.bytes.size()));
  return tensor;
}

TensorMap run_reference_all_values(const Graph& graph, const TensorMap& tensors) {
  Run run(graph, tensors);
  run.run();
  TensorMap values;
  for (const Node& node : graph.nodes)
    for (std::uint32_t o = 0; o < node.output_count; ++o) {
      const ValueId v = node.first_output + o;
      if (run.held(v).tensor) values[graph.value(v).name] = *run.held(v).tensor;
    }
  return values;
}

TensorMap run_reference(const Graph& graph, const TensorMap& tensors) {
  Run run(graph, tensors);
  run.run();
  TensorMap outputs;
  for (const ValueId v : graph.outputs) {
    if (!run.held(v).tensor)
      throw Error(ErrorKind::kInput, fmt::format("output \"{}\" is a tuple, not a tensor", graph.value(v).name));
    outputs[graph.value(v).name] = *run.held(v).tensor;
  }
  return outputs;
}

}  // namespace fusec
