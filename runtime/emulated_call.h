// One call of a compiled model on the PTX emulator, in the caller's host memory. It needs only the manifest and copies
// no tensor. runtime/emulator_device.h, in contrast, checks a launch plan against its model.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "fusec/collective.h"
#include "fusec/kernel_image.h"
#include "runtime/emulator/emulator.h"
#include "runtime/module_calls.h"

namespace fusec {

// The parsed PTX of a module's images.
class EmulatedKernels {
 public:
  // Throws Error(kEnvironment) if an image has no PTX.
  explicit EmulatedKernels(std::span<const KernelImage> images);
  const emulator::Module& module_of(const std::string& kernel) const;

 private:
  std::vector<emulator::Module> modules_;
  std::map<std::string, std::size_t> module_of_;
};

// Executes the call. `arguments` and `results` point to the host memory of each tensor. Throws Error(kEnvironment) with
// the emulator's findings if there are any, and Error(kInput) for collectives without `communicate`.
void run_on_emulator(const ManifestModel& model, const ResolvedCall& call, const EmulatedKernels& kernels,
                     std::span<void* const> arguments, std::span<void* const> results, int threads,
                     const Communicate& communicate);

}  // namespace fusec
