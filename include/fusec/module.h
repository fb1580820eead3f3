// Runs a compiled model: on a GPU through the CUDA driver, or on the CPU by the PTX emulator.
//
//   const fusec::Compilation result = fusec::compile(model, {.ptx = true});
//   const fusec::Module module(result.manifest, fusec::images_of(result));  // or from files
//   fusec::DeviceModule loaded(module, 0);                                  // on GPU 0
//   loaded.launch(arguments, results, stream);                              // returns at once
//
// Running needs only a manifest and kernels, no model and no compiler; of CUDA it needs only the driver.
// Functions may be called from several threads at once. Errors are thrown as fusec::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fusec/collective.h"
#include "fusec/fusec.h"
#include "fusec/kernel_image.h"

namespace fusec {

// The alignment in bytes that every device pointer of a call must have.
inline constexpr std::size_t kDeviceAlignment = 16;

// A tensor of a call: dense, row-major. On a GPU `data` is a device pointer, a multiple of kDeviceAlignment.
struct TensorView {
  void* data = nullptr;
  std::string dtype;  // "bfloat16"
  std::vector<std::int64_t> shape;
};

// What a call takes or gives.
struct TensorDeclaration {
  std::string name;
  TensorInfo type;
  bool is_constant = false;  // of an argument: the same at every launch (a weight)
  std::string alias_of;      // results only: the input that it overwrites; the view that is passed for it is ignored
};

// The kernels of a compilation that was made with Options::ptx.
std::vector<KernelImage> images_of(const Compilation& compilation);

class Module {
 public:
  // Throws Error(kInput) if the text is no manifest, or if the model calls cuBLASLt or a launcher.
  Module(std::string manifest, std::vector<KernelImage> images);

  const std::string& manifest() const;
  const std::vector<KernelImage>& images() const;
  const std::string& arch() const;                          // "sm_90a"
  const std::vector<TensorDeclaration>& arguments() const;  // inputs, then constants, in the order of a call
  const std::vector<TensorDeclaration>& results() const;    // outputs, each once

  // The shapes of the results. Throws Error(kInput) where an argument's dtype or shape is not as declared.
  std::vector<std::vector<std::int64_t>> result_shapes(std::span<const TensorView> arguments) const;

  // Executes the PTX on the CPU, with all checks of the emulator, on host memory. `threads`: 0 for as many as there are
  // processors. Throws Error(kEnvironment) where there is no PTX, or where the emulator finds a fault, Error(kInput)
  // where the model has collectives and `communicate` is empty.
  void run_on_emulator(std::span<const TensorView> arguments, std::span<const TensorView> results, int threads = 0,
                       const Communicate& communicate = {}) const;

 private:
  friend class DeviceModule;
  struct State;
  std::shared_ptr<State> state_;
};

// Device memory that a module's owner holds: weights that come from the host.
class DeviceMemory {
 public:
  // Throws Error(kEnvironment) without a GPU, or where there is not enough memory.
  DeviceMemory(int device, std::size_t bytes);
  void* data() const;
  void copy_from_host(const void* source, std::size_t bytes);  // waits until it is done
  void copy_to_host(void* target, std::size_t bytes) const;    // waits for all that the device does

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// One launch as a CUDA graph. It owns its workspace; the caller must keep the tensors that it was captured with.
class CapturedLaunch {
 public:
  void launch(void* stream) const;  // returns at once

 private:
  friend class DeviceModule;
  struct State;
  std::shared_ptr<State> state_;
};

// A module loaded into the primary context of a GPU, the one that the CUDA runtime uses. Keeps, for each stream, a
// workspace and what is prepared of the constants.
class DeviceModule {
 public:
  // Throws Error(kEnvironment) without a driver or device, or where the kernels are for another architecture.
  DeviceModule(const Module& module, int device);

  // Enqueues the model on the stream (a CUstream or cudaStream_t; null: the legacy default stream) and returns. Kernels
  // that read only constants run first if the address of a constant or the value of a symbol differs from the last
  // launch on this stream. Arguments and results must stay valid until the stream has finished the launch. Throws
  // Error(kInput) if a tensor is not as declared, or if the model has collectives and `communicate` is empty;
  // Error(kEnvironment) if the driver refuses.
  void launch(std::span<const TensorView> arguments, std::span<const TensorView> results, void* stream,
              const Communicate& communicate = {});

  // Call after changing constants in place, or when new constants may have the addresses of earlier ones. Kernels that
  // read only constants then run again at the next launch.
  void constants_changed();

  // Captures one launch as a CUDA graph. Allocates memory and runs the kernels that read only constants, so no other
  // stream may be writing the constants; runs nothing else. Work that `communicate` enqueues is captured too. Capture
  // again after constants_changed.
  CapturedLaunch capture(std::span<const TensorView> arguments, std::span<const TensorView> results,
                         const Communicate& communicate = {});

 private:
  friend class CapturedLaunch;
  struct State;
  std::shared_ptr<State> state_;
};

// Evaluates a model op by op on the CPU, in host memory: what kernels are compared with. Tensors by name: all
// inputs and all constants without data; `results` are some of the outputs, or all.
struct NamedTensor {
  std::string name;
  TensorView tensor;
};
void run_reference(const Model& model, std::span<const NamedTensor> arguments, std::span<const NamedTensor> results);

// Whether a GPU can be used: the CUDA driver is there, starts, and has this device.
bool has_device(int device = 0);

// Waits until the stream has done all that was enqueued.
void synchronize(int device, void* stream);

}  // namespace fusec
