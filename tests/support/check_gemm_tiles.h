// One kernel of a small model by the GEMM schedule with given tiles, on the emulator with all its checks, held against
// the reference.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "codegen/gemm/gemm.h"
#include "runtime/tensor_file.h"
#include "schedule/gemm/gemm_form.h"
#include "support/check_lowered.h"
#include "support/contraction_of.h"
#include "support/short_model.h"

namespace fusec::test {

struct GemmCase {
  const char* what;
  const char* inputs;
  const char* nodes;
  const char* outputs;
  const char* symbols = "";
};

// The kernel of the case with the tiles that `pick` gives its form.
inline void check_gemm(const Nvrtc& nvrtc, const GemmCase& c, const char* arch,
                       const std::function<GemmTiles(const GemmForm&)>& pick) {
  INFO(c.what);
  const Target target = target_for(arch);
  const Graph graph = short_model(c.inputs, c.nodes, c.outputs, c.symbols);
  LoweredPlan plan = lower_plan(graph, plain_plan(graph, true), target, {});
  for (LoweredGroup& group : plan.groups)
    for (LoweredStep& step : group.steps) step.special.clear();  // the general form, whatever the symbols' values
  plan.kernels.resize(1);
  CHECK(name(plan.kernels[0].schedule).starts_with("gemm"));
  const auto [kernel, product] = product_of(graph);
  std::optional<GemmForm> tiled = find_gemm(graph, kernel, product, target);
  REQUIRE(tiled);
  tiled->tiles = pick(*tiled);
  const std::string what = fmt::format("{}, {}x{} on {}", c.what, tiled->tiles.rows, tiled->tiles.columns, arch);
  INFO(what);
  plan.kernels[0] = emit_gemm(kernel, product, *tiled, graph);
  const CompiledModule compiled = nvrtc.compile(source_of(plan), "kernels.cu", target.arch);
  const emulator::Module module(compiled.ptx, "kernels.ptx");
  const TensorMap tensors = random_tensors(graph, 5);
  const TensorMap want = run_reference(graph, tensors);
  LoweredRun run(graph, plan, tensors);
  const std::string findings = run.run(module);
  CHECK_MESSAGE(findings.empty(), findings);
  for (const ValueId v : graph.outputs) {
    const std::string& name = graph.value(v).name;
    check_close(what + ", " + name, run.result(v), want.at(name), 0.3);
  }
}

inline void check_with_tiles(const Nvrtc& nvrtc, const GemmCase& c, const GemmTiles& tiles, const char* arch) {
  check_gemm(nvrtc, c, arch, [&](const GemmForm&) { return tiles; });
}

}  // namespace fusec::test
