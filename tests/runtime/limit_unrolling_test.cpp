// Functions of much code stand once in the text where unrolled loops would repeat them too often.
#include "codegen/expr/limit_unrolling.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "codegen/expr/compile_time.h"
#include "codegen/launch/lower_plan.h"
#include "runtime/tensor_file.h"
#include "support/check_lowered.h"
#include "support/short_model.h"

using namespace fusec;
using namespace fusec::test;

namespace {

KernelSource kernel_of(const std::string& loop, const std::string& value) {
  return {.name = "k",
          .text = "extern \"C\" __global__ void\n@KERNEL@(float* y) {\n" + loop +
                  "\n  for (int e = 0; e < 8 * 8; ++e) {\n    y[e] = " + value + ";\n  }\n}\n"};
}

std::string with_calls(const std::string& loop, const std::string& value) {
  KernelSource source = kernel_of(loop, value);
  limit_unrolling(source);
  return source.text;
}

}  // namespace

TEST_CASE("a function is called where a loop would repeat it too often") {
  const std::string calls = with_calls("#pragma unroll", "tanf(y[e]) + fabsf(y[e])");
  CHECK(calls.find("y[e] = @KERNEL@_tanf(y[e]) + fabsf(y[e]);") != std::string::npos);
  CHECK(calls.starts_with("static __device__ __noinline__ float @KERNEL@_tanf(float a) { return tanf(a); }\n"));
  CHECK(with_calls("#pragma unroll 2", "tanf(y[e])") == kernel_of("#pragma unroll 2", "tanf(y[e])").text);
  CHECK(with_calls("", "tanf(y[e])") == kernel_of("", "tanf(y[e])").text);
  CHECK(with_calls("#pragma unroll", "fabsf(y[e])") == kernel_of("#pragma unroll", "fabsf(y[e])").text);
}

TEST_CASE("the dearest functions are called first, until the others may stand") {
  const std::string calls = with_calls("#pragma unroll", "powf(sinf(y[e]), coshf(y[e]))");
  CHECK(calls.find("@KERNEL@_powf(@KERNEL@_sinf(y[e]), coshf(y[e]))") != std::string::npos);
}

TEST_CASE("functions of doubles, and the prelude's of either, are called as they are") {
  const std::string calls = with_calls("#pragma unroll", "float_floor_mod(atan2(y[e], 2.0), 3.0)");
  CHECK(calls.find("static __device__ __noinline__ double @KERNEL@_atan2(double a, double b)") != std::string::npos);
  CHECK(calls.find("template <typename T>\nstatic __device__ __noinline__ T @KERNEL@_float_floor_mod(T a, T b)") !=
        std::string::npos);
}

TEST_CASE("loops that need not be are unrolled as far as NVRTC has time for them") {
  const auto behind_warpgroups = [](const std::string& value) {
    KernelSource source = kernel_of(std::string(kUnrollToFit), value);
    source.schedule = {KernelKind::kGemm, MatrixUnit::kWarpgroup};
    limit_unrolling(source);
    return source.text;
  };
  CHECK(behind_warpgroups("fabsf(y[e])") == kernel_of("#pragma unroll", "fabsf(y[e])").text);
  CHECK(behind_warpgroups("tanf(y[e])") == kernel_of("#pragma unroll 4", "tanf(y[e])").text);
  const std::string much = "tanf(sinf(cosf(tanf(sinf(y[e])))))";
  CHECK(behind_warpgroups(much) == kernel_of("#pragma unroll 4", much).text);
  const std::string more = "tanf(sinf(cosf(tanf(sinf(tanf(sinf(y[e])))))))";
  CHECK(behind_warpgroups(more) == kernel_of("#pragma unroll 2", more).text);
}

TEST_CASE("loops of little code are unrolled whatever stands beside them") {
  KernelSource source = kernel_of(std::string(kUnrollToFit), "fabsf(y[e])");
  for (int i = 0; i < 60; ++i) source.text += "  y[0] = tanf(y[0]);\n";
  source.schedule = {KernelKind::kGemm, MatrixUnit::kWarpgroup};
  limit_unrolling(source);
  CHECK(compile_time(source.text).ms > kMaxCompileMs);
  CHECK(source.text.find("#pragma unroll\n") != std::string::npos);
}

TEST_CASE("a loop may name how often it is unrolled at most") {
  const std::string loop = std::string(kUnrollToFit) + " 4";
  CHECK(with_calls(loop, "fabsf(y[e])") == kernel_of("#pragma unroll 4", "fabsf(y[e])").text);
  KernelSource source = kernel_of(loop, "sinf(cosf(y[e]))");
  source.schedule = {KernelKind::kGemm, MatrixUnit::kWarpgroup};
  for (int i = 0; i < 19; ++i) source.text += "  y[0] = tanf(y[0]);\n";
  const std::string behind = source.text.substr(source.text.find("y[0]"));
  limit_unrolling(source);
  CHECK(source.text.find("#pragma unroll 2\n") != std::string::npos);
  CHECK(source.text.ends_with(behind));
}

TEST_CASE("turns that are left over count where nobody knows how many there are") {
  const auto copies = [](const std::string& limit) {
    return compile_time("#pragma unroll 4\n  for (int e = 0; e < " + limit + "; ++e) {\n    y[e] = tanf(y[e]);\n  }\n")
        .copies.at("tanf");
  };
  CHECK(copies("8") == 4);
  CHECK(copies("3") == 3);
  CHECK(copies("lines") == 5);
}

TEST_CASE("what a lambda stands for counts as often as it is called") {
  const std::string body = "  const auto make = [&](int e) {\n    y[e] = tanf(y[e]);\n  };\n";
  CHECK(compile_time(body).copies.empty());
  CHECK(compile_time(body + "  make(0);\n").copies.at("tanf") == 1);
  CHECK(compile_time(body + "  make(0);\n#pragma unroll\n  for (int e = 0; e < 3; ++e) {\n    make(e);\n  }\n")
            .copies.at("tanf") == 4);
}

TEST_CASE("kernels that call functions compute what the reference does") {
  const auto nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const std::string dtype : {"float32", "float64"}) {
    const Graph graph = short_model(
        "x " + dtype + " 48,9; z " + dtype + " 48,9",
        "a = sin x; b = asinh a; c = erf b; d = atan2 c z; e = fmod d 7.0; f = abs e; g = remainder f 7.0; h = cos g; "
        "p = tan h; s = amax p {\"dim\": [0], \"keepdim\": true}; y = sub p s",
        "y");
    const FusionPlan plan = plain_plan(graph, true);
    const LoweredPlan lowered = lower_plan(graph, plan, Target{}, {});
    CHECK(std::ranges::any_of(lowered.kernels, [](const KernelSource& kernel) {
      return kernel.text.find("__noinline__") != std::string::npos;
    }));
    const TensorMap tensors = random_tensors(graph, 7);
    const TensorMap want = run_reference(graph, tensors), got = run_on_emulator(*nvrtc, graph, plan, tensors);
    check_close("y", got.at("y"), want.at("y"));
  }
}
