// Loads the kernels of a launch plan into a CUDA context and enqueues the plan's steps on a stream.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fusec/kernel_image.h"
#include "runtime/cuda_driver.h"
#include "runtime/resolve_steps.h"

namespace fusec {

// Returns the address of a buffer of the call. Never called with kNowhere.
using BaseAddress = std::function<DevicePointer(BufferRef::Kind kind, std::uint32_t index)>;

class CudaProgram {
 public:
  // The CUDA context must be current here and in all calls below. An image is loaded from its PTX if its cubin is not
  // for the device. Throws Error(kEnvironment) if neither loads, or if a kernel is in none of the images.
  CudaProgram(const CudaDriver& driver, const LaunchPlan& plan, std::span<const KernelImage> images);
  ~CudaProgram();
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;

  // Executes a collective step; `from` and `to` are the addresses of operand and result.
  using Collect = std::function<void(const ResolvedStep& step, DevicePointer from, DevicePointer to)>;

  // Enqueues the steps and returns without waiting. Allocates nothing. Throws Error(kEnvironment) if the driver
  // refuses.
  void enqueue(std::span<const ResolvedStep> steps, const BaseAddress& base, CudaHandle stream,
               const Collect& collect = {}) const;

 private:
  void load(const KernelImage& image);
  CudaHandle find(const std::string& kernel) const;
  void require_room(const ResolvedStep& step) const;
  void launch(const ResolvedStep& step, const BaseAddress& base, CudaHandle stream) const;

  const CudaDriver& driver_;
  const LaunchPlan& plan_;
  std::vector<CudaHandle> modules_, functions_;  // functions_ by kernel of the plan
};

}  // namespace fusec
