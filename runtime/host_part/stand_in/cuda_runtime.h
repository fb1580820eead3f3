// Stands in for the CUDA runtime when a plain C++ compiler compiles the host part of out.cu. It has only what that part
// uses. Every call goes to a recorder; no call touches a device.
#pragma once

#include "recorded_runtime.h"

#define __device__

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
};
#define CUDART_VERSION 13000
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrComputeCapabilityMajor = 75 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
typedef struct CUstream_st* cudaStream_t;

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1) : x(width), y(height), z(depth) {}
};

extern "C" const fusec_recorded_runtime* fusec_runtime;

inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                    cudaStream_t stream) {
  const unsigned grid_extents[] = {grid.x, grid.y, grid.z}, block_extents[] = {block.x, block.y, block.z};
  return cudaError_t(fusec_runtime->launch(fusec_runtime->recorder, kernel, grid_extents, block_extents, arguments,
                                           shared_bytes, stream));
}

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaError_t(fusec_runtime->copy(fusec_runtime->recorder, to, from, bytes, kind, stream));
}

template <class Variable>
inline cudaError_t cudaGetSymbolAddress(void** address, const Variable& symbol) {
  return cudaError_t(fusec_runtime->symbol_address(fusec_runtime->recorder, address, &symbol, sizeof symbol));
}

inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return cudaError_t(fusec_runtime->set_attribute(fusec_runtime->recorder, kernel, attribute, value));
}

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const bool counts = attribute == cudaDevAttrMultiProcessorCount;
  *value = counts ? fusec_runtime->multiprocessors : fusec_runtime->capability_major;
  return cudaSuccess;
}

inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  *blocks = 1;
  return cudaSuccess;
}
