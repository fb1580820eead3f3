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

// What the cubin says of a kernel, for the launch at hand.
struct KernelCost {
  int registers = 0;              // a thread
  std::int64_t stack_bytes = 0;   // a thread
  std::int64_t spill_bytes = 0;   // of the stack: what is no local array of the PTX
  std::int64_t shared_bytes = 0;  // a block, static and dynamic
  Occupancy occupancy;
};

struct KernelProfile {
  std::string kernel;
  std::int64_t least_bytes = 0;  // its inputs once, its outputs once
  emulator::Report report;
  int threads = 0;                  // a block
  std::int64_t dynamic_shared = 0;  // bytes
  std::optional<KernelCost> cost;   // where a cubin is at hand
};

struct EmulatorResult {
  TensorMap outputs;
  std::vector<KernelProfile> profiles;  // by launch
  std::vector<KernelProfile> prepared;  // of M_prepare
  std::vector<std::string> findings;    // beyond those of the kernels: outputs that nobody wrote as a whole
};

// `modules` are the units, `unit_of` says in which a kernel is. Findings are in the profiles; nothing throws
// because of them. With a host part, what that enqueues is executed, after it has been held against the plan
// (runtime/host_part/check_host_part.h): InternalError where it does something else.
EmulatorResult run_on_emulator(const Graph& graph, const LaunchPlan& plan, const std::vector<emulator::Module>& modules,
                               const std::vector<std::uint32_t>& unit_of, const Target& target,
                               const TensorMap& tensors, emulator::Options options, HostPart* host = nullptr);

// Fills in what each launch costs on the target, from the units' cubins. Units without one are passed over.
void add_costs(std::vector<KernelProfile>& profiles, const std::vector<CompiledModule>& modules,
               const std::vector<emulator::Module>& parsed, const Target& target);

// What the target would take for a launch with these counts: the slowest of its bytes and its instructions, with the
// last wave of blocks as empty as it is. For comparing ways to do one thing; `profile.cost` must be there.
double counted_seconds(const KernelProfile& profile, const Target& target);

// The units' PTX, parsed.
std::vector<emulator::Module> parse_units(const std::vector<CompiledModule>& modules);

}  // namespace fusec
