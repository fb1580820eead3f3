// The reference device: evaluates a graph node by node, unfused, on the CPU, in the stated dtypes. What fused kernels
// are compared with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/evaluate/scalar_functions.h"
#include "ir/graph.h"
#include "ir/host_tensor.h"

namespace fusec {

// Tensors by value name.
using TensorMap = std::map<std::string, HostTensor>;

// The symbols' values that the shapes of the run-time tensors say, in symbol order. Throws Error(kInput) when a shape
// contradicts its declaration, another shape or a bound, or a tensor's dtype is another; `tensors` has every input.
std::vector<std::int64_t> solve_symbols(const Graph& graph, const TensorMap& tensors);

// The value of a constant that the model knows: its `data`, or its part of a safetensors file.
HostTensor constant_tensor(const Graph& graph, const Constant& constant);

// How the results of nodes are rounded.
struct ResultRounding {
  Precision precision = Precision::kDeclared;
  // Results of 16 bits and more are rounded up or down at random, the nearer with the greater probability: what
  // op-by-op rounding may come to as well.
  std::optional<std::uint64_t> random_seed = std::nullopt;
};

// Outputs by value name, each of its declared dtype, or of what the precision holds it as. `tensors` holds the inputs
// and the constants without data (a constant with a safetensors reference may be given, too, and then overrules the
// file). Throws Error(kInput) for a graph with custom or communication ops.
TensorMap run_reference(const Graph& graph, const TensorMap& tensors, const ResultRounding& rounding = {});

// Every value that a node computes, by name: for finding the first wrong one.
TensorMap run_reference_all_values(const Graph& graph, const TensorMap& tensors, const ResultRounding& rounding = {});

}  // namespace fusec
