// The reference device: evaluates a graph node by node on the CPU, rounding each result to its declared dtype. Fused
// kernels are compared with it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/evaluate/scalar_functions.h"
#include "ir/graph.h"
#include "ir/host_tensor.h"

namespace fusec {

class SafetensorsFile;

// Tensors by value name.
using TensorMap = std::map<std::string, HostTensor>;

// The symbols' values, in symbol order, from the shapes of `tensors`, which must hold every input. Throws Error(kInput)
// if a shape contradicts its declaration, another shape or a bound, or if a dtype is wrong.
std::vector<std::int64_t> solve_symbols(const Graph& graph, const TensorMap& tensors);

// Reads constants that have data or a safetensors reference. Keeps the files open: a header may name 100,000 tensors.
class ConstantReader {
 public:
  explicit ConstantReader(const Graph& graph) : graph_(graph) {}
  HostTensor read(const Constant& constant);

 private:
  const Graph& graph_;
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files_;  // by path
};

// How the results of nodes are rounded.
struct ResultRounding {
  Precision precision = Precision::kDeclared;
  // If set, results of 16 bits and more are rounded up or down at random, to the nearer value with the greater
  // probability. This samples the possible errors of op-by-op rounding.
  std::optional<std::uint64_t> random_seed = std::nullopt;
};

// Outputs by value name, in their declared dtypes or in the dtypes of `rounding.precision`. `tensors` holds the inputs
// and the constants without data; a constant given here replaces its safetensors reference. Throws Error(kInput) for a
// graph with custom or communication ops.
TensorMap run_reference(const Graph& graph, const TensorMap& tensors, const ResultRounding& rounding = {});

// The results of all nodes by name, for finding the first wrong one.
TensorMap run_reference_all_values(const Graph& graph, const TensorMap& tensors, const ResultRounding& rounding = {});

}  // namespace fusec
