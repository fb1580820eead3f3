// Outputs of lowered kernels, run on the emulator and held against the reference.
#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "support/run_lowered.h"

namespace fusec::test {

// Roundings that a kernel may make differently from the reference: it keeps more digits, and sums in another order.
inline double relative_tolerance(DType dtype) {
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

// `floor`: of small elements, as a part of the largest; sums over many rounded operands lose so much.
inline void check_close(const std::string& name, const HostTensor& got, const HostTensor& want, double floor = 0.05) {
  double scale = 0;
  for (std::int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.real(i))) scale = std::max(scale, std::abs(want.real(i)));
  const double relative = relative_tolerance(want.dtype);
  std::int64_t wrong = 0, first = -1;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    const double g = got.real(i), w = want.real(i);
    const bool near = is_float(want.dtype)
                          ? g == w || (std::isnan(g) && std::isnan(w)) ||
                                std::abs(g - w) <= relative * (std::abs(w) + floor * std::min(scale, 1e3)) + 1e-7
                          : got.integer(i) == want.integer(i);
    if (!near && wrong++ == 0) first = i;
  }
  CHECK_MESSAGE(wrong == 0, name, ": ", wrong, " of ", want.size(), " elements differ; element ", first, " is ",
                first < 0 ? 0 : got.real(first), ", expected ", first < 0 ? 0 : want.real(first));
}

inline std::shared_ptr<const Nvrtc> nvrtc_or_skip() {
  std::string why;
  auto nvrtc = Nvrtc::load(&why);
  if (!nvrtc) MESSAGE("skipped: ", why);
  return nvrtc;
}

inline TensorMap run_on_emulator(const Nvrtc& nvrtc, const Graph& graph, const FusionPlan& plan,
                                 const TensorMap& tensors, const EmitOptions& options = {},
                                 const Target& target = Target{}) {
  const LoweredPlan lowered = lower_plan(graph, plan, target, options);
  const CompiledModule compiled = nvrtc.compile(source_of(lowered), "kernels.cu", target.arch);
  const emulator::Module module(compiled.ptx, "kernels.ptx");
  LoweredRun run(graph, lowered, tensors);
  const std::string findings = run.run(module);
  CHECK_MESSAGE(findings.empty(), findings);
  TensorMap results;
  for (const ValueId v : graph.outputs) results.emplace(graph.value(v).name, run.result(v));
  return results;
}

}  // namespace fusec::test
