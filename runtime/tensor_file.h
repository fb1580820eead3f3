// Tensors by name, from and to safetensors files; made at random; compared.
#pragma once

#include <optional>
#include <string>

#include "runtime/reference/reference.h"
#include "runtime/tolerance.h"

namespace fusec {

// The inputs and data-less constants of the graph. Throws Error(kInput) for a tensor that is missing, superfluous or
// has another dtype or rank.
TensorMap load_tensors(const Graph& graph, const std::string& path);

void save_tensors(const std::string& path, const Graph& graph, const TensorMap& tensors);

// Random inputs at the symbols' hints: floats about 0, integers that are used as indices within range.
TensorMap random_tensors(const Graph& graph, std::uint64_t seed);

struct Difference {
  std::string output;
  std::vector<std::int64_t> index;  // of the first element that is off
  double got = 0, expected = 0;
  std::int64_t count = 0;  // how many are
};

// The first output whose elements are not |got - want| <= atol + rtol |want| (NaN equals NaN). Where the tolerance is not
// the user's, atol is of the root mean square of the output's values other than 0 if that is over 1.
std::optional<Difference> first_difference(const TensorMap& got, const TensorMap& want, const Tolerances& tolerances);

}  // namespace fusec
