// Reads tensors from safetensors files, writes them, and makes random ones.
#pragma once

#include <string>

#include "runtime/reference/reference.h"

namespace fusec {

// Whether a run needs tensors that are not in the model: inputs, and constants without data.
bool needs_tensors(const Graph& graph);

// The inputs and data-less constants of the graph. Throws Error(kInput) for a tensor that is missing, superfluous or
// has another dtype or rank.
TensorMap load_tensors(const Graph& graph, const std::string& path);

// The expected value of each output of the graph. Float outputs may have another float dtype in the file. Throws
// Error(kInput) for a tensor that is missing, superfluous or of another dtype.
TensorMap load_expected_outputs(const Graph& graph, const std::string& path);

void save_tensors(const std::string& path, const Graph& graph, const TensorMap& tensors);

// Random inputs and constants with symbols at their hints: floats around 0; integers used as indices are in range.
TensorMap random_tensors(const Graph& graph, std::uint64_t seed);

}  // namespace fusec
