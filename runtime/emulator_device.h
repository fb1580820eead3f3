// Runs a model's launch plan on the PTX emulator: every kernel executed, checked and counted on the CPU.
#pragma once

#include <string>
#include <vector>

#include "analysis/target.h"
#include "codegen/launch_plan.h"
#include "codegen/nvrtc.h"
#include "runtime/emulator/emulator.h"
#include "runtime/host_part/host_part.h"
#include "runtime/reference/reference.h"

namespace fusec {

struct KernelProfile {
  std::string kernel;
  std::int64_t least_bytes = 0;  // its inputs once, its outputs once
  emulator::Report report;
};

struct EmulatorResult {
  TensorMap outputs;
  std::vector<KernelProfile> profiles;  // by launch
  std::vector<std::string> findings;    // beyond those of the kernels: outputs that nobody wrote as a whole
};

// `modules` are the compiled units, `unit_of` says in which a kernel is. Findings are in the profiles; nothing throws
// because of them. With a host part, what that enqueues is executed, after it has been held against the plan
// (runtime/host_part/check_host_part.h): InternalError where it does something else.
EmulatorResult run_on_emulator(const Graph& graph, const LaunchPlan& plan, const std::vector<CompiledModule>& modules,
                               const std::vector<std::uint32_t>& unit_of, const Target& target,
                               const TensorMap& tensors, emulator::Options options, HostPart* host = nullptr);

}  // namespace fusec
