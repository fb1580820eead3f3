// The state that the public modules (fusec/module.h) share.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fusec/module.h"
#include "runtime/emulated_call.h"
#include "runtime/module_calls.h"
#include "runtime/read_manifest.h"

namespace fusec {

struct Module::State {
  State(std::string manifest_text, std::vector<KernelImage> kernel_images);
  const EmulatedKernels& emulated_kernels();  // parsed at the first call

  std::string manifest;
  std::vector<KernelImage> images;
  ManifestModel model;
  std::vector<TensorDeclaration> arguments, results;
  ModuleCalls calls{model};

 private:
  std::mutex mutex;
  std::optional<EmulatedKernels> emulated;
};

std::vector<CallTensor> call_tensors(std::span<const TensorView> views);

}  // namespace fusec
