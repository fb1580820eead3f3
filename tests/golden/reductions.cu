// Made by fusec from "reductions" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   reductions_0_mul_sum_sqrt_v_amax
//       reads x 3000 B; writes root, peak 660 B
//   reductions_1_sub_argmin_mean
//       reads x, peak 3600 B; writes where_least, everything 124 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// The value of lane (this lane ^ mask).
template <class T>
__device__ __forceinline__ T from_lane_xor(T value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ __forceinline__ bool from_lane_xor(bool value, int mask) {
  return __shfl_xor_sync(0xffffffffu, (int)value, mask) != 0;
}
// kCount partial results in shared memory; neighbouring results are in neighbouring banks.
template <class T, int kCount>
struct Partials {
  T value[kCount];
  __device__ __forceinline__ void put(int i, T from) { value[i] = from; }
  __device__ __forceinline__ T get(int i) const { return value[i]; }
};

// Reduces over each kLanes neighbouring lanes, a power of two, in a fixed order; all of them get the result.
template <int kLanes = 32, class Combine, class T>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
}

// Reduces over the block; every thread gets the result. The number of warps is a power of two. Each call in a kernel
// has its own kCall and so its own shared memory: no barrier is needed between calls.
template <int kThreads, int kCall, class Combine, class T>
__device__ __forceinline__ T block_reduce(T value, Combine combine) {
  __shared__ Partials<T, kThreads / 32> partial;
  value = warp_reduce(value, combine);
  if (threadIdx.x % 32 == 0) partial.put(threadIdx.x / 32, value);
  __syncthreads();
  value = partial.get(threadIdx.x % (kThreads / 32));
#pragma unroll
  for (int mask = kThreads / 64; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
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

// sum / n, correctly rounded except near the smallest floats. high + low = 1 / n, both positive.
__device__ __forceinline__ float exact_mean(float sum, float high, float low) {
  return __fmaf_rn(sum, high, __fmul_rn(sum, low));
}

// Argmax and argmin: a value and its position. The first of equal values wins; NaN wins over every number. A reduction
// begins with the least (greatest) value of T at position 0.
template <class T, class Position = int>
struct Extreme {
  T value;
  Position position;
};
// operator() combines partial results of any positions; next() combines `a` with an element b at a later position.
struct FirstMaximum {
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> operator()(Extreme<T, P> a, Extreme<T, P> b) const {
    const bool b_nan = b.value != b.value, same = a.value == b.value || (a.value != a.value && b_nan);
    const bool greater = !(b.value <= a.value) && a.value == a.value;
    return greater || (same && b.position < a.position) ? b : a;
  }
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> next(Extreme<T, P> a, Extreme<T, P> b) const {
    return !(b.value <= a.value) && a.value == a.value ? b : a;
  }
};
struct FirstMinimum {
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> operator()(Extreme<T, P> a, Extreme<T, P> b) const {
    const bool b_nan = b.value != b.value, same = a.value == b.value || (a.value != a.value && b_nan);
    const bool less = !(b.value >= a.value) && a.value == a.value;
    return less || (same && b.position < a.position) ? b : a;
  }
  template <class T, class P>
  __device__ __forceinline__ Extreme<T, P> next(Extreme<T, P> a, Extreme<T, P> b) const {
    return !(b.value >= a.value) && a.value == a.value ? b : a;
  }
};

// Shuffles and stores the value and the position separately.
template <class T, class P>
__device__ __forceinline__ Extreme<T, P> from_lane_xor(Extreme<T, P> value, int mask) {
  return {from_lane_xor(value.value, mask), from_lane_xor(value.position, mask)};
}
template <class T, class P, int kCount>
struct Partials<Extreme<T, P>, kCount> {
  T value[kCount];
  P position[kCount];
  __device__ __forceinline__ void put(int i, Extreme<T, P> from) { value[i] = from.value, position[i] = from.position; }
  __device__ __forceinline__ Extreme<T, P> get(int i) const { return {value[i], position[i]}; }
};

// kCount words of 32 bits in registers. Loads and stores use the widest access, 4, 8 or 16 bytes, that divides them;
// the address must be a multiple of that.
template <int kCount>
struct Words {
  unsigned w[kCount];
};
template <int kCount>
__device__ __forceinline__ Words<kCount> load_words(const void* from) {
  Words<kCount> words;
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const uint4 four = *(const uint4*)((const unsigned*)from + i);
      words.w[i] = four.x, words.w[i + 1] = four.y, words.w[i + 2] = four.z, words.w[i + 3] = four.w;
    }
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const uint2 two = *(const uint2*)((const unsigned*)from + i);
      words.w[i] = two.x, words.w[i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) words.w[i] = ((const unsigned*)from)[i];
  }
  return words;
}
template <int kCount>
__device__ __forceinline__ void store_words(void* to, const Words<kCount>& words) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4)
      *(uint4*)((unsigned*)to + i) = make_uint4(words.w[i], words.w[i + 1], words.w[i + 2], words.w[i + 3]);
  } else if constexpr (kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) *(uint2*)((unsigned*)to + i) = make_uint2(words.w[i], words.w[i + 1]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) ((unsigned*)to)[i] = words.w[i];
  }
}
// Element e of kBits bits, zero-extended. put_element ORs an element into words whose bits there are 0.
template <int kBits, int kCount>
__device__ __forceinline__ unsigned element(const Words<kCount>& words, int e) {
  if constexpr (kBits == 32) return words.w[e];
  constexpr int kEach = 32 / kBits;
  return (words.w[e / kEach] >> (kBits * (e % kEach))) & ((1u << (kBits & 31)) - 1u);
}
template <int kBits, int kCount>
__device__ __forceinline__ void put_element(Words<kCount>& words, int e, unsigned bits) {
  constexpr int kEach = 32 / kBits;
  words.w[e / kEach] |= (kBits == 32 ? bits : bits & ((1u << (kBits & 31)) - 1u)) << (kBits * (e % kEach) & 31);
}

}  // namespace

// ---- reductions_0_mul_sum_sqrt_v_amax --------------------------------------------------------------------
// squares = mul(x, x)
// energy = sum(squares)
// root = sqrt(energy)
// writes root: float32[3, 5]
// peak = amax(x)
// writes peak: float32[3, 1, 50]
//   peak[i, 0, j] = max(max(max(max(x[i, 0, j], x[i, 1, j]), x[i, 2, j]), x[i, 3, j]), x[i, 4, j])
// A thread makes 2 neighbouring elements.
static __device__ __forceinline__ void reductions_0_mul_sum_sqrt_v_amax_part_0(const int block,
         const float* __restrict__ x,
         float* __restrict__ root) {
  if (threadIdx.x >= 32) return;
  const int lane = threadIdx.x % 32;
  const int row = block * 1 + threadIdx.x / 32;
  const int j = row % 5;
  const int rest = row / 5;
  float energy = 0.0f;
  if (const int k = lane; k < 25) {
    const Words<2> x_w = load_words<2>(x + (rest * 250 + j * 50 + k * 2));
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float x_v = __uint_as_float(element<32>(x_w, e));
      energy += x_v * x_v;
    }
  }
  energy = warp_reduce(energy, Sum{});
  if (lane == 0) {
    root[rest * 5 + j] = sqrtf(energy);
  }
}

static __device__ __forceinline__ void reductions_0_mul_sum_sqrt_v_amax_part_1(const int block,
         const float* __restrict__ x,
         float* __restrict__ peak) {
  const int t = block * 128 + threadIdx.x;
  if (t >= 75) return;
  const int j = t % 25;
  const int rest = t / 25;
  const Words<2> x_w = load_words<2>(x + (rest * 250 + j * 2));
  const Words<2> x_w_2 = load_words<2>(x + (rest * 250 + j * 2 + 50));
  const Words<2> x_w_3 = load_words<2>(x + (rest * 250 + j * 2 + 100));
  const Words<2> x_w_4 = load_words<2>(x + (rest * 250 + j * 2 + 150));
  const Words<2> x_w_5 = load_words<2>(x + (rest * 250 + j * 2 + 200));
  Words<2> peak_w = {};
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const float t_2 = nan_max(__uint_as_float(element<32>(x_w, e)), __uint_as_float(element<32>(x_w_2, e)));
    const float t_3 = nan_max(nan_max(t_2, __uint_as_float(element<32>(x_w_3, e))),
        __uint_as_float(element<32>(x_w_4, e)));
    put_element<32>(peak_w, e, __float_as_uint(nan_max(t_3, __uint_as_float(element<32>(x_w_5, e)))));
  }
  store_words(peak + (rest * 50 + j * 2), peak_w);
}

extern "C" __global__ void __launch_bounds__(128, 3)
reductions_0_mul_sum_sqrt_v_amax(const float* __restrict__ x,
         float* __restrict__ root,
         float* __restrict__ peak) {
  const int block = blockIdx.x;
  if (block < 15) return reductions_0_mul_sum_sqrt_v_amax_part_0(block, x, root);
  reductions_0_mul_sum_sqrt_v_amax_part_1(block - 15, x, peak);
}

// ---- reductions_1_sub_argmin_mean ------------------------------------------------------------------------
// centred = sub(x, peak)
// where_least = argmin(centred)
// writes where_least: int64[3, 5]
// everything = mean(x)
// writes everything: float32[]
static __device__ __forceinline__ void reductions_1_sub_argmin_mean_part_0(const int block,
         const float* __restrict__ x,
         const float* __restrict__ peak,
         long long* __restrict__ where_least) {
  if (threadIdx.x >= 32) return;
  const int lane = threadIdx.x % 32;
  const int row = block * 1 + threadIdx.x / 32;
  const int j = row % 5;
  const int rest = row / 5;
  Extreme<float> where_least_2{__uint_as_float(0x7f800000u), 0};
  if (const int k = lane; k < 25) {
    const Words<2> x_w = load_words<2>(x + (rest * 250 + j * 50 + k * 2));
    const Words<2> peak_w = load_words<2>(peak + (rest * 50 + k * 2));
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      where_least_2 = FirstMinimum{}.next(where_least_2, Extreme<float>{__uint_as_float(element<32>(x_w, e)) - __uint_as_float(element<32>(peak_w, e)), (int)(k * 2 + e)});
    }
  }
  where_least_2 = warp_reduce(where_least_2, FirstMinimum{});
  if (lane == 0) {
    where_least[rest * 5 + j] = (long long)where_least_2.position;
  }
}

static __device__ __forceinline__ void reductions_1_sub_argmin_mean_part_1(const int block,
         const float* __restrict__ x,
         float* __restrict__ everything) {
  const int lane = threadIdx.x;
  const int start = 0, stop = 750;
  const int first = (start + 3) >> 2, last = stop >> 2;  // whole vectors
  const int head = first * 4 - start;  // elements before them
  const int edge = lane < head ? start + lane : last * 4 + (lane - head);
  float row_sum = 0.0f;
  for (int k = first + lane; k < last; k += 64) {
    const Words<4> x_w = load_words<4>((const uint4*)x + k);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      row_sum += __uint_as_float(element<32>(x_w, e));
    }
  }
  if (edge < stop) {
    row_sum += x[edge];
  }
  row_sum = block_reduce<64, 0>(row_sum, Sum{});
  if (lane == 0) {
    everything[0] = exact_mean(row_sum, 0.0013333333f, 1.4280279e-11f);
  }
}

extern "C" __global__ void __launch_bounds__(64, 1)
reductions_1_sub_argmin_mean(const float* __restrict__ x,
         const float* __restrict__ peak,
         long long* __restrict__ where_least,
         float* __restrict__ everything) {
  const int block = blockIdx.x;
  if (block < 15) return reductions_1_sub_argmin_mean_part_0(block, x, peak, where_least);
  reductions_1_sub_argmin_mean_part_1(block - 15, x, everything);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct reductions_context reductions_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} reductions_libraries;
typedef struct {
  const void* x;  // float32[3, 5, 50]
  long long x_shape[3];
  void* root;  // float32[3, 5]
  void* where_least;  // int64[3, 5]
  void* everything;  // float32[]
} reductions_args;

struct reductions_context {
  char error[256];
  reductions_libraries libraries;
};

namespace {

struct reductions_sizes {
  int unused;
};


inline cudaError_t complain(reductions_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(reductions_context* ctx, const reductions_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(reductions_context* ctx, const reductions_args* args, reductions_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 3 || args->x_shape[1] != 5 || args->x_shape[2] != 50)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[3, 5, 50]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(reductions_context* ctx, const reductions_args* args, const reductions_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->root)
    return complain(ctx, cudaErrorInvalidValue, "root is null");
  if (reinterpret_cast<size_t>(args->root) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "root is not aligned to 16 bytes");
  if (!args->where_least)
    return complain(ctx, cudaErrorInvalidValue, "where_least is null");
  if (reinterpret_cast<size_t>(args->where_least) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "where_least is not aligned to 16 bytes");
  if (!args->everything)
    return complain(ctx, cudaErrorInvalidValue, "everything is null");
  if (reinterpret_cast<size_t>(args->everything) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "everything is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t reductions_create(reductions_context** ctx, const reductions_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  reductions_context* made = new reductions_context();
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
size_t reductions_workspace_bytes(const reductions_args* args) {
  reductions_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(768) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t reductions_prepared_bytes(const reductions_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t reductions_prepare(reductions_context* ctx, const reductions_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t reductions_launch(reductions_context* ctx, const reductions_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  reductions_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  if (!workspace) return complain(ctx, cudaErrorInvalidValue, "no workspace");
  if (reinterpret_cast<size_t>(workspace) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "the workspace is not aligned to 16 bytes");
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // squares, energy, root, peak
  status = launch(reinterpret_cast<const void*>(reductions_0_mul_sum_sqrt_v_amax), 16, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(args->root),
                  static_cast<void*>(static_cast<void*>(work)));
  if (status != cudaSuccess) return complain(ctx, status, "reductions_0_mul_sum_sqrt_v_amax could not be launched");
  // centred, where_least, everything
  status = launch(reinterpret_cast<const void*>(reductions_1_sub_argmin_mean), 16, 1, 1, dim3(64, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(static_cast<void*>(work)),
                  static_cast<void*>(args->where_least),
                  static_cast<void*>(args->everything));
  if (status != cudaSuccess) return complain(ctx, status, "reductions_1_sub_argmin_mean could not be launched");
  return cudaSuccess;
}

const char* reductions_error(const reductions_context* ctx) { return ctx ? ctx->error : "no context"; }

void reductions_destroy(reductions_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
