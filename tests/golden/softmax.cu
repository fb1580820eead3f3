// Made by fusec from "softmax" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   softmax_0_mul_where_softmax_cast
//       reads mask, scores 363 B; writes y 660 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

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

// 2^x; results below 2^-126 become 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

using fp16 = unsigned short;  // storage only; arithmetic is float
__device__ __forceinline__ float from_fp16(unsigned bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((unsigned short)bits));
  return x;
}
__device__ __forceinline__ fp16 to_fp16(float x) {
  fp16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// 1 / x over the full range of float.
__device__ __forceinline__ float reciprocal_fast(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

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

}  // namespace

// ---- softmax_0_mul_where_softmax_cast --------------------------------------------------------------------
// scaled = mul(scores)
// masked = where(mask, scaled)
// weights = softmax(masked)
// y = cast(weights)
// writes y: float32[5, 33]
extern "C" __global__ void __launch_bounds__(32, 5)
softmax_0_mul_where_softmax_cast(const unsigned char* __restrict__ mask, const fp16* __restrict__ scores, float* __restrict__ y) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * 1 + threadIdx.x / 32;
  float row_max = __uint_as_float(0xff800000u);
  float masked_row[2];
  float t_row[2];
#pragma unroll
  for (int turn = 0; turn < 2; ++turn) {
    const int k = lane + turn * 32;
    if (turn < 1 || k < 33) {
      const float scaled = from_fp16(scores[row * 33 + k]) * 0.125f;
      masked_row[turn] = (mask[k] != 0) ? scaled : (-1000.0f);
      row_max = nan_max(row_max, masked_row[turn]);
    }
  }
  row_max = warp_reduce(row_max, Maximum{});
  const float t = (fabsf(row_max) >= 1073741824.0f) ? 1.0f : 1.442695f;
  const float t_2 = -(row_max * t);
  float row_sum = 0.0f;
#pragma unroll
  for (int turn_2 = 0; turn_2 < 2; ++turn_2) {
    const int k_2 = lane + turn_2 * 32;
    if (turn_2 < 1 || k_2 < 33) {
      t_row[turn_2] = exp2_fast(fmaf(masked_row[turn_2], t, t_2));
      row_sum += t_row[turn_2];
    }
  }
  row_sum = warp_reduce(row_sum, Sum{});
  const float t_3 = reciprocal_fast(row_sum);
#pragma unroll
  for (int turn_3 = 0; turn_3 < 2; ++turn_3) {
    const int j = lane + turn_3 * 32;
    if (turn_3 < 1 || j < 33) {
      y[row * 33 + j] = t_row[turn_3] * t_3;
    }
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct softmax_context softmax_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} softmax_libraries;
typedef struct {
  const void* scores;  // float16[5, 33]
  long long scores_shape[2];
  const void* mask;  // bool[33]
  long long mask_shape[1];
  void* y;  // float32[5, 33]
} softmax_args;

struct softmax_context {
  char error[256];
  softmax_libraries libraries;
};

namespace {

struct softmax_sizes {
  int unused;
};


inline cudaError_t complain(softmax_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(softmax_context* ctx, const softmax_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(softmax_context* ctx, const softmax_args* args, softmax_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->scores_shape[0] != 5 || args->scores_shape[1] != 33)
    return complain(ctx, cudaErrorInvalidValue, "the extents of scores are not float16[5, 33]");
  if (args->mask_shape[0] != 33)
    return complain(ctx, cudaErrorInvalidValue, "the extents of mask are not bool[33]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(softmax_context* ctx, const softmax_args* args, const softmax_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->scores)
    return complain(ctx, cudaErrorInvalidValue, "scores is null");
  if (reinterpret_cast<size_t>(args->scores) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "scores is not aligned to 16 bytes");
  if (!args->mask)
    return complain(ctx, cudaErrorInvalidValue, "mask is null");
  if (reinterpret_cast<size_t>(args->mask) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "mask is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t softmax_create(softmax_context** ctx, const softmax_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  softmax_context* made = new softmax_context();
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
size_t softmax_workspace_bytes(const softmax_args* args) {
  softmax_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t softmax_prepared_bytes(const softmax_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t softmax_prepare(softmax_context* ctx, const softmax_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t softmax_launch(softmax_context* ctx, const softmax_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  softmax_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // scaled, masked, weights, y
  status = launch(reinterpret_cast<const void*>(softmax_0_mul_where_softmax_cast), 5, 1, 1, dim3(32, 1, 1), 0, stream,
                  static_cast<const void*>(args->mask),
                  static_cast<const void*>(args->scores),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "softmax_0_mul_where_softmax_cast could not be launched");
  return cudaSuccess;
}

const char* softmax_error(const softmax_context* ctx) { return ctx ? ctx->error : "no context"; }

void softmax_destroy(softmax_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
