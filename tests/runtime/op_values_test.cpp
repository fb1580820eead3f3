// The ops of the table against PyTorch, over dtypes, attributes and awkward values: the models of tests/ops
// (generate.py there says how they were made).
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "ir/read.h"
#include "ir/safetensors.h"
#include "runtime/reference/reference.h"

using namespace fusec;

namespace {

HostTensor stored_tensor(const SafetensorsFile& file, const std::string& name, const TensorType& type) {
  const SafetensorsFile::Tensor* found = file.find(name);
  REQUIRE_MESSAGE(found, name);
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.as_constant());
  HostTensor tensor(type.dtype, shape);
  REQUIRE(found->type == stored_type(type.dtype, shape));
  REQUIRE(found->bytes.size() == tensor.bytes.size());
  if (!found->bytes.empty()) std::memcpy(tensor.bytes.data(), found->bytes.data(), found->bytes.size());
  return tensor;
}

struct Tolerance {
  double relative = 0, absolute = 0;
};

// A few roundings of the dtype; integers, bools and 8-bit floats are exact.
Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {1e-12, 1e-13};
    case DType::kFloat32:
      return {4e-6, 1e-6};
    case DType::kFloat16:
      return {1.1e-3, 1e-6};
    case DType::kBFloat16:
      return {8.1e-3, 1e-6};
    default:
      return {};
  }
}

bool agree(const HostTensor& got, const HostTensor& want, std::int64_t i) {
  if (!is_float(want.dtype)) return got.integer(i) == want.integer(i);
  const double g = got.real(i), w = want.real(i);
  if (g == w || (std::isnan(g) && std::isnan(w))) return true;
  const Tolerance tolerance = tolerance_of(want.dtype);
  return std::isfinite(w) && std::abs(g - w) <= tolerance.absolute + tolerance.relative * std::abs(w);
}

void check_family(const std::string& family) {
  const std::string path = std::string(FUSEC_TESTS_DIR) + "/ops/" + family;
  const Graph graph = read_model(path + ".json");
  const SafetensorsFile inputs(path + ".in.safetensors"), expected(path + ".out.safetensors");
  TensorMap tensors;
  for (const ValueId v : graph.inputs) {
    const std::string& name = graph.value(v).name;
    tensors.emplace(name, stored_tensor(inputs, name, graph.tensor(v)));
  }
  const TensorMap outputs = run_reference(graph, tensors);
  REQUIRE(outputs.size() == graph.outputs.size());
  for (const ValueId v : graph.outputs) {
    const std::string& name = graph.value(v).name;
    const HostTensor want = stored_tensor(expected, name, graph.tensor(v));
    const HostTensor& got = outputs.at(name);
    REQUIRE(got.dtype == want.dtype);
    REQUIRE(got.shape == want.shape);
    std::int64_t wrong = 0, first = -1;
    for (std::int64_t i = 0; i < want.size(); ++i)
      if (!agree(got, want, i) && wrong++ == 0) first = i;
    CHECK_MESSAGE(wrong == 0, name, ": ", wrong, " elements differ; element ", first, " is ",
                  first < 0 ? 0 : got.real(first), ", expected ", first < 0 ? 0 : want.real(first));
  }
}

}  // namespace

TEST_CASE("op values agree with PyTorch") {
  for (const char* family :
       {"unary", "binary", "ternary", "creation", "reduction", "composite", "gated", "rotary", "quantize", "movement",
        "indexing", "matrix", "convolution", "attention", "pooling", "quantized"}) {
    CAPTURE(family);
    check_family(family);
  }
}
