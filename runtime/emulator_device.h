// Runs a model's launch plan on the PTX emulator: every kernel executed, checked and counted on the CPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "codegen/nvrtc/nvrtc.h"
#include "runtime/emulator/emulator.h"
#include "runtime/host_part/host_part.h"
#include "runtime/occupancy.h"
#include "runtime/reference/reference.h"
#include "schedule/target/target.h"

namespace fusec {

// Resources of a kernel launch, from its cubin.
struct KernelCost {
  int registers = 0;              // per thread
  std::int64_t stack_bytes = 0;   // per thread
  std::int64_t spill_bytes = 0;   // part of stack_bytes that is no local array of the PTX
  std::int64_t shared_bytes = 0;  // per block, static and dynamic
  Occupancy occupancy;
};

struct KernelProfile {
  std::string kernel;
  std::int64_t least_bytes = 0;  // bytes of its inputs and outputs, each once
  emulator::Report report;
  int threads = 0;                  // per block
  std::int64_t dynamic_shared = 0;  // bytes
  std::optional<KernelCost> cost;   // set if there is a cubin
};

struct EmulatorResult {
  TensorMap outputs;
  std::vector<KernelProfile> profiles;  // by launch
  std::vector<KernelProfile> prepared;  // launches of M_prepare
  std::vector<std::string> findings;    // findings outside kernels: outputs that are not completely written
};

// Runs the plan. `modules` are the compilation units; `unit_of` gives the unit of each kernel. Findings go into the
// profiles and never throw. With a host part, its recorded operations are executed, after a comparison with the plan
// (runtime/host_part/check_host_part.h) that throws InternalError for a difference.
EmulatorResult run_on_emulator(const Graph& graph, const LaunchPlan& plan, const std::vector<emulator::Module>& modules,
                               const std::vector<std::uint32_t>& unit_of, const Target& target,
                               const TensorMap& tensors, emulator::Options options, HostPart* host = nullptr);

// Fills in KernelProfile::cost from the units' cubins. Units without a cubin are skipped.
void add_costs(std::vector<KernelProfile>& profiles, const std::vector<CompiledModule>& modules,
               const std::vector<emulator::Module>& parsed, const Target& target);

// Predicted seconds of a launch on the target from its counters: the maximum over its bytes and its instructions,
// including a partly filled last wave of blocks. For comparing candidates; `profile.cost` must be set.
double counted_seconds(const KernelProfile& profile, const Target& target);

// The parsed PTX of the units.
std::vector<emulator::Module> parse_units(const std::vector<CompiledModule>& modules);

}  // namespace fusec
