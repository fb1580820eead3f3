#include "runtime/reference/reference.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

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

HostTensor held_as(const HostTensor& tensor, Precision precision) {
  const DType dtype = held_dtype(tensor.dtype, precision);
  if (dtype == tensor.dtype) return tensor;
  HostTensor held(dtype, tensor.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) held.set_real(i, tensor.real(i));
  return held;
}

// A computed value: a tensor, or the fields of a tuple.
struct Held {
  std::shared_ptr<const HostTensor> tensor;
  std::vector<Held> fields;
};

class Run {
 public:
  Run(const Graph& graph, const TensorMap& tensors, const ResultRounding& rounding)
      : graph_(graph),
        precision_(rounding.precision),
        is_random_(rounding.random_seed.has_value()),
        engine_(rounding.random_seed.value_or(0)),
        symbols_(solve_symbols(graph, tensors)),
        held_(graph.value_count()) {
    for (const ValueId v : graph.inputs) hold_given(v, tensors.at(graph.value(v).name));
    ConstantReader constants(graph);
    for (const Constant& constant : graph.constants) {
      const auto given = tensors.find(graph.value(constant.value).name);
      if (given != tensors.end())
        hold_given(constant.value, given->second);
      else
        held_[constant.value].tensor = std::make_shared<HostTensor>(held_as(constants.read(constant), precision_));
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
    held_[v].tensor = std::make_shared<HostTensor>(held_as(tensor, precision_));
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
    // Ops without a formula move values, or round a sum once; they always round to nearest.
    const bool rounds_at_random = is_random_ && node.op->special == Special::kNone;
    std::vector<HostTensor> results = evaluate_node(
        graph_, node, symbols_, [&](ValueId v) -> const HostTensor& { return *held_[v].tensor; },
        rounds_at_random ? Precision::kFloat64 : precision_);
    for (std::uint32_t o = 0; o < node.output_count; ++o) {
      const ValueId v = node.first_output + o;
      if (rounds_at_random) results[o] = randomly_rounded(results[o], graph_.tensor(v).dtype);
      held_[v].tensor = std::make_shared<HostTensor>(std::move(results[o]));
    }
  }

  HostTensor randomly_rounded(const HostTensor& exact, DType dtype) {
    if (exact.dtype == dtype) return exact;
    HostTensor rounded(dtype, exact.shape);
    for (std::int64_t i = 0; i < exact.size(); ++i) {
      const double value = exact.real(i);
      rounded.set_real(i, value);
      const double nearest = rounded.real(i), missed = std::fabs(value - nearest);
      if (missed == 0 || !std::isfinite(missed)) continue;
      const std::uint64_t raw = rounded.raw(i);
      rounded.set_raw(i, std::fabs(value) > std::fabs(nearest)
                             ? raw + 1
                             : raw - 1);  // the dtype's neighbour on the other side of `value`
      const double step = std::fabs(rounded.real(i) - nearest);
      const double uniform = static_cast<double>(engine_() >> 11) * 0x1p-53;
      if (!std::isfinite(step) || uniform * step >= missed) rounded.set_raw(i, raw);
    }
    return rounded;
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
  const Precision precision_;
  const bool is_random_;
  std::mt19937_64 engine_;
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

HostTensor ConstantReader::read(const Constant& constant) {
  const TensorType& type = graph_.tensor(constant.value);
  const std::string& value_name = graph_.value(constant.value).name;
  const std::vector<std::int64_t> shape = concrete_shape(type.shape, {});
  HostTensor tensor(type.dtype, shape);
  if (constant.data) {
    tensor.bytes = constant_bytes(*constant.data, type.dtype);
    return tensor;
  }
  if (constant.safetensors_file.empty())
    throw Error(ErrorKind::kInput, fmt::format("the tensor for constant \"{}\" is missing", value_name));
  const std::string path = (std::filesystem::path(graph_.directory) / constant.safetensors_file).string();
  std::shared_ptr<const SafetensorsFile>& file = files_[path];
  if (!file) file = std::make_shared<SafetensorsFile>(path);
  const SafetensorsFile::Tensor* stored = file->find(constant.safetensors_tensor);
  const StoredType expected = stored_type(type.dtype, shape);
  if (!stored || stored->type != expected)
    throw Error(ErrorKind::kInput, {.file = path,
                                    .what = fmt::format("tensor \"{}\"", constant.safetensors_tensor),
                                    .found = stored ? to_string(stored->type) : "nothing",
                                    .expected = to_string(expected)});
  std::memcpy(tensor.bytes.data(), stored->bytes.data(), std::min(stored->bytes.size(), tensor.bytes.size()));
  return tensor;
}

TensorMap run_reference_all_values(const Graph& graph, const TensorMap& tensors, const ResultRounding& rounding) {
  Run run(graph, tensors, rounding);
  run.run();
  TensorMap values;
  for (const Node& node : graph.nodes)
    for (std::uint32_t o = 0; o < node.output_count; ++o) {
      const ValueId v = node.first_output + o;
      if (run.held(v).tensor) values[graph.value(v).name] = *run.held(v).tensor;
    }
  return values;
}

TensorMap run_reference(const Graph& graph, const TensorMap& tensors, const ResultRounding& rounding) {
  Run run(graph, tensors, rounding);
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
