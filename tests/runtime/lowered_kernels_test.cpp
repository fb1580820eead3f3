// Lowered kernels, run on the emulator: every op of the table as a kernel of its own against the reference, and models
// with all their nodes in one group, which lowering must cut where one kernel will not do.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "codegen/lower_plan.h"
#include "ir/read.h"
#include "ir/safetensors.h"
#include "runtime/reference/reference.h"
#include "support/run_lowered.h"

using namespace fusec;

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

// Roundings that a kernel may make differently from the reference: it keeps more digits, and sums in another order.
double relative_tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-11;
    case DType::kFloat32:
      return 2e-5;
    case DType::kFloat16:
      return 2.1e-3;
    case DType::kBFloat16:
      return 1.7e-2;
    case DType::kFloat8E4M3FN:
      return 0.13;
    case DType::kFloat8E5M2:
      return 0.26;
    default:
      return 0;
  }
}

void check_close(const std::string& name, const HostTensor& got, const HostTensor& want) {
  double scale = 0;
  for (std::int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.real(i))) scale = std::max(scale, std::abs(want.real(i)));
  const double relative = relative_tolerance(want.dtype);
  std::int64_t wrong = 0, first = -1;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    const double g = got.real(i), w = want.real(i);
    const bool near = is_float(want.dtype)
                          ? g == w || (std::isnan(g) && std::isnan(w)) ||
                                std::abs(g - w) <= relative * (std::abs(w) + 0.05 * std::min(scale, 1e3)) + 1e-7
                          : got.integer(i) == want.integer(i);
    if (!near && wrong++ == 0) first = i;
  }
  CHECK_MESSAGE(wrong == 0, name, ": ", wrong, " of ", want.size(), " elements differ; element ", first, " is ",
                first < 0 ? 0 : got.real(first), ", expected ", first < 0 ? 0 : want.real(first));
}

std::shared_ptr<const Nvrtc> nvrtc_or_skip() {
  std::string why;
  auto nvrtc = Nvrtc::load(&why);
  if (!nvrtc) MESSAGE("skipped: ", why);
  return nvrtc;
}

TensorMap read_inputs(const Graph& graph, const std::string& path) {
  const SafetensorsFile file(path);
  TensorMap tensors;
  for (const auto& [name, stored] : file.tensors())
    if (const ValueId v = graph.find_value(name); v != kNone)
      tensors.emplace(name, stored_tensor(stored, graph.tensor(v).dtype));
  return tensors;
}

TensorMap run_on_emulator(const Nvrtc& nvrtc, const Graph& graph, const FusionPlan& plan, const TensorMap& tensors,
                          const EmitOptions& options = {}) {
  const LoweredPlan lowered = lower_plan(graph, plan, Target{}, options);
  const CompiledModule compiled = nvrtc.compile(test::source_of(lowered), "kernels.cu", Target{}.arch);
  const emulator::Module module(compiled.ptx, "kernels.ptx");
  test::LoweredRun run(graph, lowered, tensors);
  const std::string findings = run.run(module);
  CHECK_MESSAGE(findings.empty(), findings);
  TensorMap results;
  for (const ValueId v : graph.outputs) results.emplace(graph.value(v).name, run.result(v));
  return results;
}

void check_family(const std::string& family) {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const std::string path = std::string(FUSEC_TESTS_DIR) + "/ops/" + family;
  const Graph graph = read_model(path + ".json");
  const TensorMap tensors = read_inputs(graph, path + ".in.safetensors");
  const TensorMap want = run_reference(graph, tensors);
  const TensorMap got = run_on_emulator(*nvrtc, graph, test::plain_plan(graph, false), tensors);
  for (const auto& [name, tensor] : want) check_close(name, got.at(name), tensor);
}

void check_model_in_one_group(const std::string& model, const std::string& inputs) {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const std::string folder = std::string(FUSEC_TESTS_DIR) + "/corpus/models/";
  const Graph graph = read_model(folder + model + ".tiny.json");
  const TensorMap tensors = read_inputs(graph, folder + inputs + ".tiny.in.safetensors");
  const TensorMap want = run_reference(graph, tensors);
  const TensorMap got = run_on_emulator(*nvrtc, graph, test::plain_plan(graph, true), tensors);
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
      const TensorMap apart = run_on_emulator(*nvrtc, graph, test::plain_plan(graph, false), tensors, rounded);
      const TensorMap fused = run_on_emulator(*nvrtc, graph, test::plain_plan(graph, true), tensors, rounded);
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
