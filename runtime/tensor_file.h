// Tensors by name, from and to safetensors files; made at random.
#pragma once

#include <string>

#include "runtime/reference/reference.h"

namespace fusec {

// Whether a run needs tensors that the model does not have: inputs, and constants without data.
bool needs_tensors(const Graph& graph);

// The inputs and data-less constants of the graph. Throws Error(kInput) for a tensor that is missing, superfluous or
// has another dtype or rank.
TensorMap load_tensors(const Graph& graph, const std::string& path);

// What each output of the graph is expected to be. Floats may be of another float dtype than the output's. Throws
// Error(kInput) for a tensor that is missing, superfluous or of another dtype.
TensorMap load_expected_outputs(const Graph& graph, const std::string& path);

void save_tensors(const std::string& path, const Graph& graph, const TensorMap& tensors);

// Random inputs at the symbols' hints: floats about 0, integers that are used as indices within range.
TensorMap random_tensors(const Graph& graph, std::uint64_t seed);

}  // namespace fusec
