// Runs a model's launch plan on a GPU through the CUDA driver, which is loaded at run time.
#pragma once

#include <string>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "codegen/nvrtc/nvrtc.h"
#include "runtime/reference/reference.h"

namespace fusec {

struct CudaResult {
  TensorMap outputs;
  std::vector<double> seconds;  // per timed run of the whole plan, from an empty L2 cache, by the device's clock
  // Per kernel of the plan, with Timing::kEachKernel: the median over the timed runs, summed over its launches.
  std::vector<double> kernel_seconds;
};

// "sm_90a" for the device's compute capability (with the suffix from 9.0 on). Throws Error(kEnvironment) without a
// driver or device.
std::string native_architecture(int device);

// "NVIDIA H200". Throws Error(kEnvironment) without a driver or device.
std::string device_name(int device);

enum class Timing : std::uint8_t { kWhole, kEachKernel };

// One run for the outputs, then `timed_runs` more. Throws Error(kEnvironment) without a driver or device, or if a
// launch fails.
CudaResult run_on_cuda(const Graph& graph, const LaunchPlan& plan, const std::vector<CompiledModule>& modules,
                       const TensorMap& tensors, int device, int timed_runs, Timing timing = Timing::kWhole);

}  // namespace fusec
