// Made by fusec from "half_bytes" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   half_bytes_0_sort
//       reads x 9 B; writes line.1 144 B
//   half_bytes_1_sort
//       reads  0 B; writes line.1, line.0 153 B
//   half_bytes_2_sort
//       reads codes 4 B; writes column.1 64 B
//   half_bytes_3_sort
//       reads  0 B; writes column.1, column.0 68 B
//   half_bytes_4_cumsum
//       reads x 9 B; writes sums 144 B
//   half_bytes_5_index_put
//       reads x 9 B; writes  0 B
//   half_bytes_6_index_put
//       reads rows, news 22 B; writes  0 B
//   half_bytes_7_index_put
//       reads  0 B; writes put 9 B
//   half_bytes_8_amax
//       reads x 9 B; writes most 1 B
//   half_bytes_9_cast_cast
//       reads x, news 15 B; writes plain, plain_news 15 B
//   half_bytes_10_index_put
//       reads plain 9 B; writes  0 B
//   half_bytes_11_index_put
//       reads rows, plain_news 22 B; writes  0 B
//   half_bytes_12_index_put
//       reads  0 B; writes plain_put 9 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// Inclusive scan over the block: thread i gets the combination of the values of threads 0 to i, `total` that of all.
template <int kThreads, class Combine, class T>
__device__ __forceinline__ T block_scan(T value, Combine combine, T& total) {
  __shared__ T partial[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T before = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value = combine(before, value);
  }
  if (lane == 31) partial[warp] = value;
  __syncthreads();
  T earlier = partial[0];
  total = partial[0];
#pragma unroll
  for (int w = 1; w < kThreads / 32; ++w) {
    total = combine(total, partial[w]);
    if (w < warp) earlier = combine(earlier, partial[w]);
  }
  __syncthreads();
  return warp > 0 ? combine(earlier, value) : value;
}

// Maximum and minimum as in PyTorch: NaN if either is NaN; +0 is greater than -0.
template <class T>
__device__ __forceinline__ T nan_max(T a, T b) { return a > b ? a : b; }
template <class T>
__device__ __forceinline__ T nan_min(T a, T b) { return a < b ? a : b; }
__device__ __forceinline__ double nan_max(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
__device__ __forceinline__ double nan_min(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ float nan_max(float a, float b) {
  float greatest;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(greatest) : "f"(a), "f"(b));
  return greatest;
}
__device__ __forceinline__ float nan_min(float a, float b) {
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
  return least;
}
#else
__device__ __forceinline__ float nan_max(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
__device__ __forceinline__ float nan_min(float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); }
#endif

// Function objects that combine two partial results of a reduction.
struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
struct Product {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return a * b; }
};
struct Maximum {  // NaN if either is
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return nan_max(a, b); }
};
struct Minimum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return nan_min(a, b); }
};
struct Any {
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a || b; }
};
struct All {
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a && b; }
};

// a < b, where NaN is greater than every number.
template <class T>
__device__ __forceinline__ bool is_less(T a, T b) { return b != b ? a == a : a < b; }

// The bits of |x| in a float format with kMantissa bits of mantissa and exponent bias kBias, rounded to nearest even.
// x is finite. The result may exceed the format's greatest value; the caller checks that.
template <int kMantissa, int kBias>
__device__ __forceinline__ unsigned narrow_magnitude(float x) {
  const unsigned magnitude = __float_as_uint(x) & 0x7fffffffu;
  if ((int)(magnitude >> 23) - 127 < 1 - kBias) {  // a subnormal result counts units in the last place
    const float unit = __uint_as_float((unsigned)(127 + kMantissa - 1 + kBias) << 23);
    return (unsigned)__float2int_rn(__uint_as_float(magnitude) * unit);
  }
  constexpr int kShift = 23 - kMantissa;
  const unsigned rounded = magnitude + ((1u << (kShift - 1)) - 1u) + ((magnitude >> kShift) & 1u);
  return (rounded >> kShift) - ((unsigned)(127 - kBias) << kMantissa);
}

using fp4_e2m1 = unsigned char;  // two to a byte, low nibble first
__device__ __forceinline__ float from_fp4_e2m1(unsigned nibble) {
  const float magnitude = __uint_as_float((nibble & 7u) << 22) * __uint_as_float((127u + 126u) << 23);
  return (nibble & 8u) ? -magnitude : magnitude;
}
__device__ __forceinline__ unsigned to_fp4_e2m1(float x) {  // saturates at 6; NaN becomes 6
  if (x != x) return 7u;
  const unsigned sign = (__float_as_uint(x) >> 28) & 8u;
  if (!(fabsf(x) < 6.0f)) return sign | 7u;
  return sign | narrow_magnitude<1, 1>(x);
}

using int4_pair = unsigned char;  // two to a byte, low nibble first
__device__ __forceinline__ int from_int4(unsigned nibble) { return (int)(nibble << 28) >> 28; }

// Element i of 4-bit elements, two to a byte, low nibble first.
template <class Index>
__device__ __forceinline__ unsigned nibble(const unsigned char* pairs, Index i) {
  return ((unsigned)pairs[i >> 1] >> (4 * (int)(i & 1))) & 15u;
}

// Stable merge sort of a line's positions by the threads of a block: `order` gets the result, `other` is scratch
// memory. `before(a, b)` says whether element a comes before element b.
template <int kThreads, class Position, class Before>
__device__ __forceinline__ void sort_line(Position* order, Position* other, Position length, Before before) {
  for (Position k = threadIdx.x; k < length; k += kThreads) order[k] = k;
  __syncthreads();
  bool swapped = false;
  for (Position run = 1; run < length; run *= 2) {
    const Position* from = swapped ? other : order;
    Position* to = swapped ? order : other;
    for (Position k = threadIdx.x; k < length; k += kThreads) {
      const Position left = k / (2 * run) * (2 * run);
      const Position middle = left + run < length ? left + run : length;
      const Position end = middle + run < length ? middle + run : length;
      const bool on_left = k < middle;
      const Position mine = from[k];
      // Binary search for how many elements of the other run come before mine. Of equal ones, the left run's do.
      Position low = on_left ? middle : left, high = on_left ? end : middle;
      const Position start = low;
      while (low < high) {
        const Position half = low + (high - low) / 2;
        if (on_left ? before(from[half], mine) : !before(mine, from[half]))
          low = half + 1;
        else
          high = half;
      }
      to[left + (k - (on_left ? left : middle)) + (low - start)] = mine;
    }
    swapped = !swapped;
    __syncthreads();
  }
  if (swapped)
    for (Position k = threadIdx.x; k < length; k += kThreads) order[k] = other[k];
  __syncthreads();
}

using uint4_pair = unsigned char;  // two to a byte, low nibble first

}  // namespace

// ---- half_bytes_0_sort -----------------------------------------------------------------------------------
// line.0 = sort(x)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_0_sort(const int4_pair* __restrict__ x, long long* __restrict__ line_1, unsigned char* __restrict__ codes,
         int* __restrict__ orders) {
  const int line = blockIdx.x;
  const int length = 6;
  int* order = orders + 2 * line * length;
  int* other = order + length;
  sort_line<256>(order, other, length, [&](int a, int b) {
    return is_less(from_int4(nibble(x, line * 6 + b)), from_int4(nibble(x, line * 6 + a)));
  });
  for (int k = threadIdx.x; k < 6; k += 256) {
    const int chosen = order[k];
    codes[line * 6 + k] = nibble(x, line * 6 + chosen);
    line_1[line * 6 + k] = chosen;
  }
}

// ---- half_bytes_1_sort -----------------------------------------------------------------------------------
// line.0 = sort(x)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_1_sort(long long* __restrict__ line_1, int4_pair* __restrict__ line_0, unsigned char* __restrict__ codes) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 9) return;
  line_0[t] = codes[2 * t] | codes[2 * t + 1] << 4;
}

// ---- half_bytes_2_sort -----------------------------------------------------------------------------------
// column.0 = sort(codes)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_2_sort(const fp4_e2m1* __restrict__ codes_2, long long* __restrict__ column_1,
         unsigned char* __restrict__ codes, int* __restrict__ orders) {
  const int line = blockIdx.x;
  const int j = line % 2;
  const int rest = line / 2;
  const int length = 4;
  int* order = orders + 2 * line * length;
  int* other = order + length;
  sort_line<256>(order, other, length, [&](int a, int b) {
    return is_less(from_fp4_e2m1(nibble(codes_2, j + a * 2)), from_fp4_e2m1(nibble(codes_2, j + b * 2)));
  });
  for (int k = threadIdx.x; k < 4; k += 256) {
    const int chosen = order[k];
    codes[j + k * 2] = nibble(codes_2, j + chosen * 2);
    column_1[j + k * 2] = chosen;
  }
}

// ---- half_bytes_3_sort -----------------------------------------------------------------------------------
// column.0 = sort(codes)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_3_sort(long long* __restrict__ column_1, fp4_e2m1* __restrict__ column_0, unsigned char* __restrict__ codes) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 4) return;
  column_0[t] = codes[2 * t] | codes[2 * t + 1] << 4;
}

// ---- half_bytes_4_cumsum ---------------------------------------------------------------------------------
// sums = cumsum(x)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_4_cumsum(const int4_pair* __restrict__ x, long long* __restrict__ sums) {
  const int row = blockIdx.x;
  long long before_2 = 0;
  for (int start = 0; start < 6; start += 256) {
    const int k = start + threadIdx.x;
    long long total;
    const long long sum = block_scan<256>(k < 6 ? (long long)from_int4(nibble(x, row * 6 + k)) : (long long)0, Sum{}, total);
    if (k < 6) sums[row * 6 + k] = Sum{}(before_2, sum);
    before_2 = Sum{}(before_2, total);
  }
}

// ---- half_bytes_5_index_put ------------------------------------------------------------------------------
// put = index_put(x, news, rows)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_5_index_put(const int4_pair* __restrict__ x, unsigned char* __restrict__ codes) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 18) return;
  codes[t] = nibble(x, t);
}

// ---- half_bytes_6_index_put ------------------------------------------------------------------------------
// put = index_put(x, news, rows)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_6_index_put(const long long* __restrict__ rows, const int4_pair* __restrict__ news,
         unsigned char* __restrict__ codes) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 6) return;
  for (int k = 0; k < 2; ++k) {
    long long to = rows[k];
    if (to < 0) to += 3;
    if (to < 0 || to >= 3) continue;
    codes[t + (int)to * 6] = ((unsigned)(Sum{}(from_int4((unsigned)codes[t + (int)to * 6]), from_int4(nibble(news, t + k * 6)))) & 15u);
  }
}

// ---- half_bytes_7_index_put ------------------------------------------------------------------------------
// put = index_put(x, news, rows)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_7_index_put(int4_pair* __restrict__ put_2, unsigned char* __restrict__ codes) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 9) return;
  put_2[t] = codes[2 * t] | codes[2 * t + 1] << 4;
}

// ---- half_bytes_8_amax -----------------------------------------------------------------------------------
// most = amax(x)
// writes most: int4[]
extern "C" __global__ void __launch_bounds__(256)
half_bytes_8_amax(const int4_pair* __restrict__ x, int4_pair* __restrict__ most) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 1) return;
  unsigned pair = 0;
#pragma unroll
  for (int e = 0; e < 1; ++e) {
    int most_2 = (-2147483647 - 1);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      for (int k_2 = 0; k_2 < 6; ++k_2) {
        most_2 = max(most_2, from_int4(nibble(x, k * 6 + k_2)));
      }
    }
    pair |= ((unsigned)(most_2) & 15u) << (4 * e);
  }
  most[t] = (unsigned char)pair;
}

// ---- half_bytes_9_cast_cast ------------------------------------------------------------------------------
// plain = cast(x)
// writes plain: uint4[3, 6]
//   plain[i, j] = x[i, j]
// A thread makes two neighbouring elements.
// plain_news = cast(news)
// writes plain_news: uint4[2, 6]
//   plain_news[i, j] = news[i, j]
// A thread makes two neighbouring elements.
static __device__ __forceinline__ void half_bytes_9_cast_cast_part_0(const int block,
         const int4_pair* __restrict__ x,
         uint4_pair* __restrict__ plain) {
  const int t = block * 256 + threadIdx.x;
  if (t >= 9) return;
  unsigned pair = 0;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int at = t * 2 + e;
    __builtin_assume(at >= 0);
    const int j = at % 6;
    const int rest = at / 6;
    pair |= ((unsigned)(((unsigned)from_int4(nibble(x, rest * 6 + j))) & 15u) & 15u) << (4 * e);
  }
  plain[t] = (unsigned char)pair;
}

static __device__ __forceinline__ void half_bytes_9_cast_cast_part_1(const int block,
         const int4_pair* __restrict__ news,
         uint4_pair* __restrict__ plain_news) {
  const int t = block * 256 + threadIdx.x;
  if (t >= 6) return;
  unsigned pair = 0;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int at = t * 2 + e;
    __builtin_assume(at >= 0);
    const int j = at % 6;
    const int rest = at / 6;
    pair |= ((unsigned)(((unsigned)from_int4(nibble(news, rest * 6 + j))) & 15u) & 15u) << (4 * e);
  }
  plain_news[t] = (unsigned char)pair;
}

extern "C" __global__ void __launch_bounds__(256)
half_bytes_9_cast_cast(const int4_pair* __restrict__ x,
         uint4_pair* __restrict__ plain,
         const int4_pair* __restrict__ news,
         uint4_pair* __restrict__ plain_news) {
  const int block = blockIdx.x;
  if (block < 1) return half_bytes_9_cast_cast_part_0(block, x, plain);
  half_bytes_9_cast_cast_part_1(block - 1, news, plain_news);
}

// ---- half_bytes_10_index_put -----------------------------------------------------------------------------
// plain_put = index_put(plain, plain_news, rows)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_10_index_put(const uint4_pair* __restrict__ plain, unsigned char* __restrict__ codes) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 18) return;
  codes[t] = nibble(plain, t);
}

// ---- half_bytes_11_index_put -----------------------------------------------------------------------------
// plain_put = index_put(plain, plain_news, rows)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_11_index_put(const long long* __restrict__ rows, const uint4_pair* __restrict__ plain_news,
         unsigned char* __restrict__ codes) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 6) return;
  for (int k = 0; k < 2; ++k) {
    long long to = rows[k];
    if (to < 0) to += 3;
    if (to < 0 || to >= 3) continue;
    codes[t + (int)to * 6] = ((unsigned)(Sum{}((unsigned)codes[t + (int)to * 6], nibble(plain_news, t + k * 6))) & 15u);
  }
}

// ---- half_bytes_12_index_put -----------------------------------------------------------------------------
// plain_put = index_put(plain, plain_news, rows)
extern "C" __global__ void __launch_bounds__(256)
half_bytes_12_index_put(uint4_pair* __restrict__ plain_put, unsigned char* __restrict__ codes) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 9) return;
  plain_put[t] = codes[2 * t] | codes[2 * t + 1] << 4;
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct half_bytes_context half_bytes_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} half_bytes_libraries;
typedef struct {
  const void* x;  // int4[3, 6]
  long long x_shape[2];
  const void* codes;  // float4_e2m1fn[4, 2]
  long long codes_shape[2];
  const void* rows;  // int64[2]
  long long rows_shape[1];
  const void* news;  // int4[2, 6]
  long long news_shape[2];
  void* line_0;  // int4[3, 6]
  void* line_1;  // int64[3, 6]
  void* column_0;  // float4_e2m1fn[4, 2]
  void* sums;  // int64[3, 6]
  void* put;  // int4[3, 6]
  void* most;  // int4[]
  void* plain_put;  // uint4[3, 6]
} half_bytes_args;

struct half_bytes_context {
  char error[256];
  half_bytes_libraries libraries;
};

namespace {

struct half_bytes_sizes {
  int unused;
};


inline cudaError_t complain(half_bytes_context* ctx, cudaError_t status, const char* text) {
  if (ctx) snprintf(ctx->error, sizeof ctx->error, "%s", text);
  return status;
}

// Enqueues one kernel; a grid without blocks is nothing to do.
template <class... Arguments>
inline cudaError_t launch(const void* kernel, long long grid_x, long long grid_y, long long grid_z, dim3 block,
                          long long shared_bytes, cudaStream_t stream, Arguments... arguments) {
  if (grid_x <= 0 || grid_y <= 0 || grid_z <= 0) return cudaSuccess;
  void* pointers[] = {&arguments...};
  return cudaLaunchKernel(kernel, dim3(unsigned(grid_x), unsigned(grid_y), unsigned(grid_z)), block, pointers,
                          size_t(shared_bytes), stream);
}

inline cudaError_t check_constants(half_bytes_context* ctx, const half_bytes_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(half_bytes_context* ctx, const half_bytes_args* args, half_bytes_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 3 || args->x_shape[1] != 6)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not int4[3, 6]");
  if (args->codes_shape[0] != 4 || args->codes_shape[1] != 2)
    return complain(ctx, cudaErrorInvalidValue, "the extents of codes are not float4_e2m1fn[4, 2]");
  if (args->rows_shape[0] != 2)
    return complain(ctx, cudaErrorInvalidValue, "the extents of rows are not int64[2]");
  if (args->news_shape[0] != 2 || args->news_shape[1] != 6)
    return complain(ctx, cudaErrorInvalidValue, "the extents of news are not int4[2, 6]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(half_bytes_context* ctx, const half_bytes_args* args, const half_bytes_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->codes)
    return complain(ctx, cudaErrorInvalidValue, "codes is null");
  if (reinterpret_cast<size_t>(args->codes) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "codes is not aligned to 16 bytes");
  if (!args->rows)
    return complain(ctx, cudaErrorInvalidValue, "rows is null");
  if (reinterpret_cast<size_t>(args->rows) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "rows is not aligned to 16 bytes");
  if (!args->news)
    return complain(ctx, cudaErrorInvalidValue, "news is null");
  if (reinterpret_cast<size_t>(args->news) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "news is not aligned to 16 bytes");
  if (!args->line_0)
    return complain(ctx, cudaErrorInvalidValue, "line.0 is null");
  if (reinterpret_cast<size_t>(args->line_0) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "line.0 is not aligned to 16 bytes");
  if (!args->line_1)
    return complain(ctx, cudaErrorInvalidValue, "line.1 is null");
  if (reinterpret_cast<size_t>(args->line_1) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "line.1 is not aligned to 16 bytes");
  if (!args->column_0)
    return complain(ctx, cudaErrorInvalidValue, "column.0 is null");
  if (reinterpret_cast<size_t>(args->column_0) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "column.0 is not aligned to 16 bytes");
  if (!args->sums)
    return complain(ctx, cudaErrorInvalidValue, "sums is null");
  if (reinterpret_cast<size_t>(args->sums) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "sums is not aligned to 16 bytes");
  if (!args->put)
    return complain(ctx, cudaErrorInvalidValue, "put is null");
  if (reinterpret_cast<size_t>(args->put) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "put is not aligned to 16 bytes");
  if (!args->most)
    return complain(ctx, cudaErrorInvalidValue, "most is null");
  if (reinterpret_cast<size_t>(args->most) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "most is not aligned to 16 bytes");
  if (!args->plain_put)
    return complain(ctx, cudaErrorInvalidValue, "plain_put is null");
  if (reinterpret_cast<size_t>(args->plain_put) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "plain_put is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t half_bytes_create(half_bytes_context** ctx, const half_bytes_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  half_bytes_context* made = new half_bytes_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t half_bytes_workspace_bytes(const half_bytes_args* args) {
  half_bytes_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(768) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t half_bytes_prepared_bytes(const half_bytes_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t half_bytes_prepare(half_bytes_context* ctx, const half_bytes_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t half_bytes_launch(half_bytes_context* ctx, const half_bytes_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  half_bytes_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  if (!workspace) return complain(ctx, cudaErrorInvalidValue, "no workspace");
  if (reinterpret_cast<size_t>(workspace) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "the workspace is not aligned to 16 bytes");
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // line
  status = launch(reinterpret_cast<const void*>(half_bytes_0_sort), 3, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(args->line_1),
                  static_cast<void*>(static_cast<void*>(work)),
                  static_cast<void*>(static_cast<void*>(work + (256))));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_0_sort could not be launched");
  status = launch(reinterpret_cast<const void*>(half_bytes_1_sort), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<void*>(args->line_1),
                  static_cast<void*>(args->line_0),
                  static_cast<void*>(static_cast<void*>(work)));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_1_sort could not be launched");
  // column
  status = launch(reinterpret_cast<const void*>(half_bytes_2_sort), 2, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->codes),
                  static_cast<void*>(static_cast<void*>(work)),
                  static_cast<void*>(static_cast<void*>(work + (256))),
                  static_cast<void*>(static_cast<void*>(work + (512))));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_2_sort could not be launched");
  status = launch(reinterpret_cast<const void*>(half_bytes_3_sort), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<void*>(static_cast<void*>(work)),
                  static_cast<void*>(args->column_0),
                  static_cast<void*>(static_cast<void*>(work + (256))));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_3_sort could not be launched");
  // sums
  status = launch(reinterpret_cast<const void*>(half_bytes_4_cumsum), 3, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(args->sums));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_4_cumsum could not be launched");
  // put
  status = launch(reinterpret_cast<const void*>(half_bytes_5_index_put), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(static_cast<void*>(work)));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_5_index_put could not be launched");
  status = launch(reinterpret_cast<const void*>(half_bytes_6_index_put), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->rows),
                  static_cast<const void*>(args->news),
                  static_cast<void*>(static_cast<void*>(work)));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_6_index_put could not be launched");
  status = launch(reinterpret_cast<const void*>(half_bytes_7_index_put), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<void*>(args->put),
                  static_cast<void*>(static_cast<void*>(work)));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_7_index_put could not be launched");
  // most
  status = launch(reinterpret_cast<const void*>(half_bytes_8_amax), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(args->most));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_8_amax could not be launched");
  // plain, plain_news
  status = launch(reinterpret_cast<const void*>(half_bytes_9_cast_cast), 2, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(static_cast<void*>(work)),
                  static_cast<const void*>(args->news),
                  static_cast<void*>(static_cast<void*>(work + (256))));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_9_cast_cast could not be launched");
  // plain_put
  status = launch(reinterpret_cast<const void*>(half_bytes_10_index_put), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(static_cast<void*>(work)),
                  static_cast<void*>(static_cast<void*>(work + (512))));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_10_index_put could not be launched");
  status = launch(reinterpret_cast<const void*>(half_bytes_11_index_put), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->rows),
                  static_cast<const void*>(static_cast<void*>(work + (256))),
                  static_cast<void*>(static_cast<void*>(work + (512))));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_11_index_put could not be launched");
  status = launch(reinterpret_cast<const void*>(half_bytes_12_index_put), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<void*>(args->plain_put),
                  static_cast<void*>(static_cast<void*>(work + (512))));
  if (status != cudaSuccess) return complain(ctx, status, "half_bytes_12_index_put could not be launched");
  return cudaSuccess;
}

const char* half_bytes_error(const half_bytes_context* ctx) { return ctx ? ctx->error : "no context"; }

void half_bytes_destroy(half_bytes_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
