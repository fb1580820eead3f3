// More of CUB's device-wide algorithms, as cub_device.cu has them: sorts, runs and histograms.
#include <cub/cub.cuh>

namespace {

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

struct Less {
  __host__ __device__ bool operator()(unsigned a, unsigned b) const { return a < b; }
};

}  // namespace

extern "C" {

int device_radix_sort(const unsigned* x, unsigned* y, int n) {
  return with_storage([=](void* s, std::size_t& b) { return cub::DeviceRadixSort::SortKeys(s, b, x, y, n); });
}

int device_merge_sort(unsigned* x, int n) {
  return with_storage([=](void* s, std::size_t& b) { return cub::DeviceMergeSort::SortKeys(s, b, x, n, Less()); });
}

int device_run_lengths(const int* x, int* values, int* lengths, int* count, int n) {
  return with_storage([=](void* s, std::size_t& b) {
    return cub::DeviceRunLengthEncode::Encode(s, b, x, values, lengths, count, n);
  });
}

int device_histogram(const unsigned char* x, int* bins, int n) {
  return with_storage([=](void* s, std::size_t& b) {
    return cub::DeviceHistogram::HistogramEven(s, b, x, bins, 17, 0.0f, 256.0f, n);
  });
}

}  // extern "C"
