// Lowered kernels, run on the emulator: every op of the table as a kernel of its own against the reference, and models
// with all their nodes in one group, which lowering must cut where one kernel will not do.
#include <doctest/doctest.h>

#include <cstring>

#include "codegen/launch/lower_plan.h"
#include "ir/read.h"
#include "ir/safetensors.h"
#include "runtime/reference/reference.h"
#include "support/check_lowered.h"

using namespace fusec;
using namespace fusec::test;

namespace {

HostTensor stored_tensor(const SafetensorsFile::Tensor& stored, DType dtype) {
  std::vector<std::int64_t> shape = stored.type.shape;
  HostTensor tensor(dtype, shape);
  if (tensor.bytes.size() != stored.bytes.size() && !shape.empty()) {  // 4-bit integers lie in bytes
    shape.back() *= 2;
    tensor = HostTensor(dtype, shape);
  }
  REQUIRE(tensor.bytes.size() == stored.bytes.size());
  if (!stored.bytes.empty()) std::memcpy(tensor.bytes.data(), stored.bytes.data(), stored.bytes.size());
  return tensor;
}

TensorMap read_inputs(const Graph& graph, const std::string& path) {
  const SafetensorsFile file(path);
  TensorMap tensors;
  for (const auto& [name, stored] : file.tensors())
    if (const ValueId v = graph.find_value(name); v != kNone)
      tensors.emplace(name, stored_tensor(stored, graph.tensor(v).dtype));
  return tensors;
}

void check_family(const std::string& family) {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const std::string path = std::string(FUSEC_TESTS_DIR) + "/ops/" + family;
  const Graph graph = read_model(path + ".json");
  const TensorMap tensors = read_inputs(graph, path + ".in.safetensors");
  const TensorMap want = run_reference(graph, tensors);
  const TensorMap got = run_on_emulator(*nvrtc, graph, plain_plan(graph, false), tensors);
  for (const auto& [name, tensor] : want) check_close(name, got.at(name), tensor);
}

void check_model_in_one_group(const std::string& model, const std::string& inputs) {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const std::string folder = std::string(FUSEC_TESTS_DIR) + "/corpus/models/";
  const Graph graph = read_model(folder + model + ".tiny.json");
  const TensorMap tensors = read_inputs(graph, folder + inputs + ".tiny.in.safetensors");
  const TensorMap want = run_reference(graph, tensors);
  const TensorMap got = run_on_emulator(*nvrtc, graph, plain_plan(graph, true), tensors);
  for (const auto& [name, tensor] : want) check_close(name, got.at(name), tensor);
}

}  // namespace

TEST_SUITE("lowered kernels") {
  TEST_CASE("ternary ops") {
    check_family("ternary");
  }
  TEST_CASE("rotary ops") {
    check_family("rotary");
  }
  TEST_CASE("creation ops") {
    check_family("creation");
  }
  TEST_CASE("movement ops") {
    check_family("movement");
  }
  TEST_CASE("indexing, scatters and sorts") {
    check_family("indexing");
  }
  TEST_CASE("composite ops") {
    check_family("composite");
  }
  TEST_CASE("attention") {
    check_family("attention");
  }
  TEST_CASE("matrix products") {
    check_family("matrix");
  }

  TEST_CASE("a float32 model in one group is cut where it must be") {
    check_model_in_one_group("gpt2_block_f32", "gpt2_block_f32");
  }
  TEST_CASE("a graph of branches in one group") {
    check_model_in_one_group("dag60_f32", "dag60_f32");
  }
  TEST_CASE("symbols in one group") {
    check_model_in_one_group("fmt_symbols_f32", "fmt_symbols_f32");
  }

  TEST_CASE("with rounded intermediates, fusion changes no bit") {
    const auto nvrtc = nvrtc_or_skip();
    if (!nvrtc) return;
    for (const std::string model : {"mul_add_sigmoid_fp16", "elemwise_chain40_f32", "sgd_nesterov_f32", "promote_f32",
                                    "fmt_probe_pattern_fp16", "movement_f32"}) {
      const std::string folder = std::string(FUSEC_TESTS_DIR) + "/corpus/models/";
      const Graph graph = read_model(folder + model + ".tiny.json");
      const TensorMap tensors = read_inputs(graph, folder + model + ".tiny.in.safetensors");
      const EmitOptions rounded{.round_intermediates = true};
      const TensorMap apart = run_on_emulator(*nvrtc, graph, plain_plan(graph, false), tensors, rounded);
      const TensorMap fused = run_on_emulator(*nvrtc, graph, plain_plan(graph, true), tensors, rounded);
      for (const auto& [name, tensor] : apart) CHECK_MESSAGE(fused.at(name).bytes == tensor.bytes, model, ": ", name);
    }
  }
}

TEST_SUITE("full") {
  TEST_CASE("lowered unary ops") {
    check_family("unary");
  }
  TEST_CASE("lowered binary ops") {
    check_family("binary");
  }
  TEST_CASE("lowered reductions and scans") {
    check_family("reduction");
  }
  TEST_CASE("lowered gated units") {
    check_family("gated");
  }
  TEST_CASE("lowered quantized ops") {
    check_family("quantize");
  }
  TEST_CASE("lowered poolings") {
    check_family("pooling");
  }
  TEST_CASE("lowered convolutions") {
    check_family("convolution");
  }
}
