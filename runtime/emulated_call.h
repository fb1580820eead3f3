// One call of a compiled model on the PTX emulator, in the caller's host memory. Unlike runtime/emulator_device, which
// checks a launch plan against its model, this needs the manifest alone and copies no tensor.
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

// The PTX of a module's images, parsed.
class EmulatedKernels {
 public:
  // Throws Error(kEnvironment) where an image has no PTX.
  explicit EmulatedKernels(std::span<const KernelImage> images);
  const emulator::Module& module_of(const std::string& kernel) const;

 private:
  std::vector<emulator::Module> modules_;
  std::map<std::string, std::size_t> module_of_;
};

// Host memory of each argument and result, in the order of a call. Throws Error(kEnvironment) with what the emulator
// found, if anything, Error(kInput) where there are collectives and no way to communicate.
void run_on_emulator(const ManifestModel& model, const ResolvedCall& call, const EmulatedKernels& kernels,
                     std::span<void* const> arguments, std::span<void* const> results, int threads,
                     const Communicate& communicate);

}  // namespace fusec
