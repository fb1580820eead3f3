// Made by fusec from "split_concat" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   split_concat_0_split_mul_exp_v_concat_and_2_more
//       reads x 288 B; writes y 144 B

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

}  // namespace

// ---- split_concat_0_split_mul_exp_v_concat_and_2_more ----------------------------------------------------
// left = split(x)
// right_half = mul(right)
// left_exp = exp(left)
// joined = concat(right_half, middle, left_exp)
// halves.0 = chunk(joined)
// y = maximum(halves.0, halves.1)
// writes y: float32[4, 9]
// A thread makes one element.
extern "C" __global__ void __launch_bounds__(256)
split_concat_0_split_mul_exp_v_concat_and_2_more(const float* __restrict__ x, float* __restrict__ y) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 36) return;
  const int j = t % 9;
  const int rest = t / 9;
  const bool holds = j < 8;
  const float right_half = (holds ? x[rest * 18 + j + 10] : 0.0f) * 0.5f;
  const bool holds_2 = (j - 8) >= 0;
  const float t_2 = holds_2 ? (holds_2 ? x[rest * 18 + j - 4] : 0.0f) : 0.0f;
  const float joined = holds ? right_half : t_2;
  const bool holds_3 = (j + 1) < 6;
  const float left = ((j - 5) >= 0) ? x[rest * 18 + j - 5] : 0.0f;
  const float left_exp = expf(left);
  const float joined_2 = holds_3 ? (holds_3 ? x[rest * 18 + j + 5] : 0.0f) : left_exp;
  y[rest * 9 + j] = nan_max(joined, joined_2);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct split_concat_context split_concat_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} split_concat_libraries;
typedef struct {
  const void* x;  // float32[4, 18]
  long long x_shape[2];
  void* y;  // float32[4, 9]
} split_concat_args;

struct split_concat_context {
  char error[256];
  split_concat_libraries libraries;
};

namespace {

struct split_concat_sizes {
  int unused;
};


inline cudaError_t complain(split_concat_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(split_concat_context* ctx, const split_concat_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(split_concat_context* ctx, const split_concat_args* args, split_concat_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 4 || args->x_shape[1] != 18)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[4, 18]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(split_concat_context* ctx, const split_concat_args* args, const split_concat_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t split_concat_create(split_concat_context** ctx, const split_concat_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  split_concat_context* made = new split_concat_context();
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
size_t split_concat_workspace_bytes(const split_concat_args* args) {
  split_concat_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t split_concat_prepared_bytes(const split_concat_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t split_concat_prepare(split_concat_context* ctx, const split_concat_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t split_concat_launch(split_concat_context* ctx, const split_concat_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  split_concat_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // parts, right_half, left_exp, joined, halves, y
  status = launch(reinterpret_cast<const void*>(split_concat_0_split_mul_exp_v_concat_and_2_more), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "split_concat_0_split_mul_exp_v_concat_and_2_more could not be launched");
  return cudaSuccess;
}

const char* split_concat_error(const split_concat_context* ctx) { return ctx ? ctx->error : "no context"; }

void split_concat_destroy(split_concat_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
