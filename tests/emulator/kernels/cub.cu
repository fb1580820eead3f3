// CUB's block and warp primitives, each over one block of 128 threads with four items a thread.
#include <cub/cub.cuh>

constexpr int kThreads = 128, kItems = 4;

extern "C" {

__global__ void block_reduce(const int* x, int* y) {
  using Reduce = cub::BlockReduce<int, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  int items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  const int sum = Reduce(storage).Sum(items);
  if (threadIdx.x == 0) *y = sum;
}

__global__ void block_reduce_raking(const int* x, int* y) {
  using Reduce = cub::BlockReduce<int, kThreads, cub::BLOCK_REDUCE_RAKING>;
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) *y = sum;
}

__global__ void block_scan(const int* x, int* y) {
  using Load = cub::BlockLoad<int, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, kThreads, kItems, cub::BLOCK_STORE_TRANSPOSE>;
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } storage;
  int items[kItems];
  Load(storage.load).Load(x, items);
  __syncthreads();
  Scan(storage.scan).InclusiveSum(items, items);
  __syncthreads();
  Store(storage.store).Store(y, items);
}

__global__ void block_sort(const unsigned* x, unsigned* y) {
  using Sort = cub::BlockRadixSort<unsigned, kThreads, kItems>;
  __shared__ typename Sort::TempStorage storage;
  unsigned items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  Sort(storage).Sort(items);
  for (int i = 0; i < kItems; ++i) y[threadIdx.x * kItems + i] = items[i];
}

__global__ void block_merge_sort(const unsigned* x, unsigned* y) {
  using Sort = cub::BlockMergeSort<unsigned, kThreads, kItems>;
  __shared__ typename Sort::TempStorage storage;
  unsigned items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  Sort(storage).Sort(items, [](unsigned a, unsigned b) { return a < b; });
  for (int i = 0; i < kItems; ++i) y[threadIdx.x * kItems + i] = items[i];
}

__global__ void warp_primitives(const int* x, int* y) {
  using Reduce = cub::WarpReduce<int>;
  using Scan = cub::WarpScan<int>;
  using Narrow = cub::WarpReduce<int, 8>;
  __shared__ typename Reduce::TempStorage reduce[kThreads / 32];
  __shared__ typename Scan::TempStorage scan[kThreads / 32];
  __shared__ typename Narrow::TempStorage narrow[kThreads / 8];
  const int warp = threadIdx.x / 32, value = x[threadIdx.x];
  int sum = Reduce(reduce[warp]).Sum(value);
  int prefix;
  Scan(scan[warp]).ExclusiveSum(value, prefix);
  int small = Narrow(narrow[threadIdx.x / 8]).Reduce(value, [](int a, int b) { return a > b ? a : b; });
  y[threadIdx.x] = prefix;
  if (threadIdx.x % 32 == 0) y[kThreads + warp] = sum;
  if (threadIdx.x % 8 == 0) y[kThreads + kThreads / 32 + threadIdx.x / 8] = small;
}

__global__ void block_histogram(const unsigned char* x, int* y) {
  using Histogram = cub::BlockHistogram<unsigned char, kThreads, kItems, 16>;
  __shared__ typename Histogram::TempStorage storage;
  __shared__ int bins[16];
  unsigned char items[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = x[threadIdx.x * kItems + i];
  Histogram(storage).Histogram(items, bins);
  __syncthreads();
  if (threadIdx.x < 16) y[threadIdx.x] = bins[threadIdx.x];
}

}  // extern "C"
