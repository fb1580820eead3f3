#include "runtime/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/safetensors.h"

namespace fusec {
namespace {

bool is_supplied(const Constant& constant) {
  return !constant.data && constant.safetensors_file.empty();
}

// Converts a stored tensor. int4 and uint4 tensors are stored as U8 with the last dimension halved.
HostTensor tensor_of(const SafetensorsFile::Tensor& stored, DType dtype, const std::string& value_name,
                     const std::string& path) {
  std::vector<std::int64_t> shape = stored.type.shape;
  if ((dtype == DType::kInt4 || dtype == DType::kUInt4) && !shape.empty()) shape.back() *= 2;
  const StoredType expected = stored_type(dtype, shape);
  if (stored.type != expected)
    throw Error(ErrorKind::kInput, {.file = path,
                                    .what = fmt::format("tensor \"{}\"", value_name),
                                    .found = to_string(stored.type),
                                    .expected = fmt::format("dtype {}", expected.dtype)});
  HostTensor tensor(dtype, shape);
  std::memcpy(tensor.bytes.data(), stored.bytes.data(), std::min(tensor.bytes.size(), stored.bytes.size()));
  return tensor;
}

// For each value that is an index operand: the least extent that it indexes.
std::map<ValueId, std::int64_t> index_limits(const Graph& graph) {
  std::map<ValueId, std::int64_t> limits;
  auto limit = [&](ValueId v, const Dim& extent) {
    const std::int64_t e = value_at_hint(extent, graph.symbols);
    const auto [it, fresh] = limits.emplace(v, e);
    if (!fresh) it->second = std::min(it->second, e);
  };
  for (const Node& node : graph.nodes) {
    count_step();
    const std::string& op = node.op->name;
    if (op == "embedding") {
      limit(node.inputs[1], graph.tensor(node.inputs[0]).shape[0]);
    } else if (op == "gather" || op == "index_select" || op == "scatter") {
      const Shape& shape = graph.tensor(node.inputs[0]).shape;
      std::int64_t dim = graph.attributes(node).integer("dim", 0);
      if (dim < 0) dim += static_cast<std::int64_t>(shape.size());
      if (!shape.empty()) limit(node.inputs[1], shape[static_cast<std::size_t>(dim)]);
    } else if (op == "index_put") {
      const Shape& shape = graph.tensor(node.inputs[0]).shape;
      for (std::size_t i = 2; i < node.inputs.size() && i - 2 < shape.size(); ++i)
        if (node.inputs[i] != kNone) limit(node.inputs[i], shape[i - 2]);
    }
  }
  return limits;
}

}  // namespace

bool needs_tensors(const Graph& graph) {
  return !graph.inputs.empty() || std::ranges::any_of(graph.constants, is_supplied);
}

TensorMap load_tensors(const Graph& graph, const std::string& path) {
  const SafetensorsFile file(path);
  TensorMap tensors;
  auto take = [&](ValueId v, bool required) {
    const std::string& value_name = graph.value(v).name;
    const SafetensorsFile::Tensor* stored = file.find(value_name);
    if (stored)
      tensors.emplace(value_name, tensor_of(*stored, graph.tensor(v).dtype, value_name, path));
    else if (required)
      throw Error(ErrorKind::kInput, {.file = path, .what = fmt::format("no tensor \"{}\"", value_name)});
  };
  for (const ValueId v : graph.inputs) take(v, true);
  for (const Constant& constant : graph.constants) take(constant.value, is_supplied(constant));
  for (const auto& [stored_name, tensor] : file.tensors())
    if (!tensors.contains(stored_name))
      throw Error(ErrorKind::kInput,
                  {.file = path,
                   .what = fmt::format("tensor \"{}\" is neither an input nor a constant of the model", stored_name)});
  return tensors;
}

TensorMap load_expected_outputs(const Graph& graph, const std::string& path) {
  const SafetensorsFile file(path);
  TensorMap tensors;
  for (const ValueId v : graph.outputs) {
    const std::string& value_name = graph.value(v).name;
    const SafetensorsFile::Tensor* stored = file.find(value_name);
    if (!stored) throw Error(ErrorKind::kInput, {.file = path, .what = fmt::format("no tensor \"{}\"", value_name)});
    DType dtype = graph.tensor(v).dtype;
    for (const DTypeInfo& other : all_dtypes())
      if (is_float(dtype) && is_float(other.dtype) && other.safetensors == stored->type.dtype) {
        dtype = other.dtype;
        break;
      }
    tensors.emplace(value_name, tensor_of(*stored, dtype, value_name, path));
  }
  for (const auto& [stored_name, tensor] : file.tensors())
    if (!tensors.contains(stored_name))
      throw Error(ErrorKind::kInput,
                  {.file = path, .what = fmt::format("tensor \"{}\" is no output of the model", stored_name)});
  return tensors;
}

void save_tensors(const std::string& path, const Graph& graph, const TensorMap& tensors) {
  std::vector<NamedTensor> list;
  for (const ValueId v : graph.outputs) {
    count_step();
    const std::string& value_name = graph.value(v).name;
    const auto it = tensors.find(value_name);
    if (it == tensors.end()) continue;
    bool seen = false;
    for (const NamedTensor& t : list) seen = seen || t.name == value_name;
    if (seen) continue;
    const HostTensor& tensor = it->second;
    list.push_back({value_name,
                    stored_type(tensor.dtype, tensor.shape),
                    {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()}});
  }
  write_safetensors(path, list);
}

TensorMap random_tensors(const Graph& graph, std::uint64_t seed) {
  const auto limits = index_limits(graph);
  std::mt19937_64 engine(seed);
  // std::normal_distribution differs between libraries; this sequence must be the same everywhere.
  auto uniform = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  TensorMap tensors;
  auto make = [&](ValueId v) {
    const TensorType& type = graph.tensor(v);
    std::vector<std::int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(value_at_hint(dim, graph.symbols));
    HostTensor tensor(type.dtype, shape);
    const auto limit = limits.find(v);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      count_step();
      if (is_float(type.dtype))
        tensor.set_real(i, 2 * uniform() - 1, Overflow::kSaturate);
      else if (limit != limits.end())
        tensor.set_integer(
            i, static_cast<std::int64_t>(uniform() * static_cast<double>(std::max<std::int64_t>(limit->second, 1))));
      else
        tensor.set_integer(i, static_cast<std::int64_t>(engine() % 16));
    }
    tensors.emplace(graph.value(v).name, std::move(tensor));
  };
  for (const ValueId v : graph.inputs) make(v);
  for (const Constant& constant : graph.constants)
    if (is_supplied(constant)) make(constant.value);
  return tensors;
}

}  // namespace fusec
