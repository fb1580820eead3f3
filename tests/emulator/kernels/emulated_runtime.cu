// The part of the CUDA runtime that CUB's host side and examples/host.cu call, over an EmulatedDevice. Linked into the shared object of
// the kernels in place of libcudart.
#include "emulated_runtime.h"

#include <cuda_runtime_api.h>

#include <map>
#include <string>

#ifndef __CUDA_ARCH__  // on the device, nvcc 13 declares functions of the same names
namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};

struct Runtime {
  const EmulatedDevice* device = nullptr;
  std::map<const void*, std::string> kernels;  // by host stub
  Configuration next;                          // of the launch that is being prepared
  cudaError_t last = cudaSuccess;
};

Runtime& runtime() {
  static Runtime one;
  return one;
}

cudaError_t launch(const void* stub, const dim3& grid, const dim3& block, std::size_t shared, void** arguments) {
  const auto found = runtime().kernels.find(stub);
  if (found == runtime().kernels.end()) return runtime().last = cudaErrorInvalidDeviceFunction;
  const unsigned grid_size[3] = {grid.x, grid.y, grid.z}, block_size[3] = {block.x, block.y, block.z};
  const EmulatedDevice& device = *runtime().device;
  const bool good = device.launch(device.owner, found->second.c_str(), grid_size, block_size, shared, arguments) == 0;
  return runtime().last = good ? cudaSuccess : cudaErrorLaunchFailure;
}

}  // namespace

extern "C" {

void use_emulated_device(const EmulatedDevice* device) {
  runtime().device = device;
}

// ---- what nvcc's host code calls

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 1;
}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  runtime().kernels[stub] = name;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, struct CUstream_st* stream) {
  runtime().next = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = runtime().next.grid;
  *block = runtime().next.block;
  *shared = runtime().next.shared;
  *static_cast<cudaStream_t*>(stream) = runtime().next.stream;
  return cudaSuccess;
}
// A kernel's handle is its stub.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                               cudaStream_t) {
  return launch(kernel, grid, block, shared, arguments);
}

// ---- what CUB and examples/host.cu call

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                             cudaStream_t) {
  return launch(stub, grid, block, shared, arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub, void** arguments) {
  return launch(stub, config->gridDim, config->blockDim, config->dynamicSmemBytes, arguments);
}
cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const EmulatedDevice& device = *runtime().device;
  *pointer = reinterpret_cast<void*>(device.allocate(device.owner, bytes));
  return cudaSuccess;
}
cudaError_t cudaFree(void*) {
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t) {
  const EmulatedDevice& device = *runtime().device;
  device.fill(device.owner, reinterpret_cast<unsigned long long>(pointer), value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  const EmulatedDevice& device = *runtime().device;
  const auto target = reinterpret_cast<unsigned long long>(to), source = reinterpret_cast<unsigned long long>(from);
  if (kind == cudaMemcpyHostToDevice)
    device.to_device(device.owner, target, from, bytes);
  else if (kind == cudaMemcpyDeviceToHost)
    device.to_host(device.owner, to, source, bytes);
  else if (kind == cudaMemcpyDeviceToDevice)
    device.copy(device.owner, target, source, bytes);
  else
    return cudaErrorNotSupported;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  const cudaError_t last = runtime().last;
  runtime().last = cudaSuccess;
  return last;
}
cudaError_t cudaPeekAtLastError() {
  return runtime().last;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  static int one;
  *stream = reinterpret_cast<cudaStream_t>(&one);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 8;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 4;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = 0x7fffffff;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 48 * 1024;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 163 * 1024;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    default:
      *value = 0;
      break;
  }
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = cudaFuncAttributes{};
  attributes->ptxVersion = attributes->binaryVersion = 80;
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, std::size_t,
                                                                   unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

}  // extern "C"
#endif  // __CUDA_ARCH__
