// CUB's device-wide algorithms, host side and all: tests/emulator/cub_device.cpp gives this file a CUDA runtime whose
// launches the emulator executes. Pointers are device addresses; 0 is success.
#include <cub/cub.cuh>

namespace {

// Every algorithm of CUB: once for the size of its temporary storage, once for the work.
template <class Algorithm>
int with_storage(Algorithm algorithm) {
  std::size_t bytes = 0;
  cudaError_t status = algorithm(nullptr, bytes);
  if (status != cudaSuccess) return static_cast<int>(status);
  void* storage = nullptr;
  status = cudaMalloc(&storage, bytes);
  if (status != cudaSuccess) return static_cast<int>(status);
  status = algorithm(storage, bytes);
  cudaFree(storage);
  return static_cast<int>(status);
}

struct IsOdd {
  __host__ __device__ bool operator()(int value) const { return value % 2 != 0; }
};

}  // namespace

extern "C" {

int device_reduce(const int* x, int* y, int n) {
  return with_storage([=](void* s, std::size_t& b) { return cub::DeviceReduce::Sum(s, b, x, y, n); });
}

int device_max(const float* x, float* y, int n) {
  return with_storage([=](void* s, std::size_t& b) { return cub::DeviceReduce::Max(s, b, x, y, n); });
}

int device_inclusive_scan(const int* x, int* y, int n) {
  return with_storage([=](void* s, std::size_t& b) { return cub::DeviceScan::InclusiveSum(s, b, x, y, n); });
}

int device_exclusive_scan(const float* x, float* y, int n) {
  return with_storage([=](void* s, std::size_t& b) { return cub::DeviceScan::ExclusiveSum(s, b, x, y, n); });
}

int device_segmented_reduce(const int* x, int* y, int segments, const int* offsets) {
  return with_storage([=](void* s, std::size_t& b) {
    return cub::DeviceSegmentedReduce::Sum(s, b, x, y, segments, offsets, offsets + 1);
  });
}

int device_select_if(const int* x, int* y, int* count, int n) {
  return with_storage([=](void* s, std::size_t& b) { return cub::DeviceSelect::If(s, b, x, y, count, n, IsOdd()); });
}

}  // extern "C"
