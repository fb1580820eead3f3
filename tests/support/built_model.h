// A model from JSON text to its launch plan and emitted file, and on to the emulator: what the tests of the devices and
// of the host part share.
#pragma once

#include "codegen/host/emit_file.h"
#include "codegen/launch/build_launch_plan.h"
#include "codegen/launch/lower_plan.h"
#include "codegen/nvrtc/compile_all.h"
#include "ir/read.h"
#include "runtime/emulator_device.h"
#include "runtime/tensor_file.h"
#include "support/run_lowered.h"

namespace fusec::test {

struct BuiltModel {
  Graph graph;
  FusionPlan plan;
  LaunchPlan launch;
  EmittedFile file;
  Target target = target_for("sm_80");

  // Every node a kernel of its own, or all in one group.
  explicit BuiltModel(const std::string& json, bool together = false)
      : graph(read_model_text(json, "model", ".")), plan(plain_plan(graph, together)) {
    launch = build_launch_plan(graph, lower_plan(graph, plan, target, {}));
    file = emit_file(graph, plan, launch, target, 1);
  }

  std::vector<CompiledModule> compile(const Nvrtc& nvrtc) const {
    return compile_all(nvrtc, file.units, target.arch, {1, default_cache_directory(), CubinUse::kProof});
  }
};

// The findings of all kernels, in words.
inline std::string findings_of(const EmulatorResult& result) {
  std::string text;
  for (const KernelProfile& profile : result.prepared) text += emulator::describe(profile.report);
  for (const KernelProfile& profile : result.profiles) text += emulator::describe(profile.report);
  for (const std::string& finding : result.findings) text += finding + "\n";
  return text;
}

}  // namespace fusec::test
