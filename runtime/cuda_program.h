// The kernels of a launch plan, loaded into a CUDA context, and the enqueueing of the plan's steps on a stream.
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

// Where the buffers of a call begin. Not asked about kNowhere.
using BaseAddress = std::function<DevicePointer(BufferRef::Kind kind, std::uint32_t index)>;

class CudaProgram {
 public:
  // The CUDA context must be current, here and in all calls below. An image whose cubin is not for the device is loaded
  // from its PTX. Throws Error(kEnvironment) where neither loads, or a kernel is in none of the images.
  CudaProgram(const CudaDriver& driver, const LaunchPlan& plan, std::span<const KernelImage> images);
  ~CudaProgram();
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;

  // What does a collective: the step, and where operand and result lie.
  using Collect = std::function<void(const ResolvedStep& step, DevicePointer from, DevicePointer to)>;

  // Returns at once, with the steps enqueued. Allocates nothing. Throws Error(kEnvironment) where the driver refuses.
  void enqueue(std::span<const ResolvedStep> steps, const BaseAddress& base, CudaHandle stream,
               const Collect& collect = {}) const;

 private:
  void load(const KernelImage& image);
  CudaHandle find(const std::string& kernel) const;
  void launch(const ResolvedStep& step, const BaseAddress& base, CudaHandle stream) const;

  const CudaDriver& driver_;
  const LaunchPlan& plan_;
  std::vector<CudaHandle> modules_, functions_;  // functions: by kernel of the plan
};

}  // namespace fusec
