// Made by fusec from "conv_bn_relu" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   conv_bn_relu_0_conv2d_square_batch_norm_relu
//       reads filter, image, mean, variance_root, weight, ... 2936 B; writes active 1600 B
//   conv_bn_relu_1_max_pool2d
//       reads active 1600 B; writes pooled 256 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// NaN if either is, as PyTorch's maximum and minimum.
template <class T>
__device__ __forceinline__ T nan_max(T a, T b) { return a > b || a != a ? a : b; }
template <class T>
__device__ __forceinline__ T nan_min(T a, T b) { return a < b || a != a ? a : b; }
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
#endif

}  // namespace

// ---- conv_bn_relu_0_conv2d_square_batch_norm_relu --------------------------------------------------------
// features = conv2d(image, filter)
// variance = square(variance_root)
// normed = batch_norm(features, weight, bias, mean, variance)
// active = relu(normed)
// writes active: float32[2, 8, 5, 5]
// A block makes a 64x64 tile; 16 of k at a time go through shared memory.
extern "C" __global__ void __launch_bounds__(256)
conv_bn_relu_0_conv2d_square_batch_norm_relu(const float* __restrict__ filter, const float* __restrict__ image, const float* __restrict__ mean,
         const float* __restrict__ variance_root, const float* __restrict__ weight,
         const float* __restrict__ bias, float* __restrict__ active) {
  __shared__ __align__(16) float left_tile[16][65];
  __shared__ __align__(16) float right_tile[16][65];
  const int tile = blockIdx.x;
  const int column0 = tile % 1 * 64;
  const int row0 = tile / 1 % 1 * 64;
  const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < 27; k0 += 16) {
#pragma unroll
    for (int e = threadIdx.x; e < 1024; e += 256) {
      const int place = e % 16, line = e / 16;
      const int at = row0 + line, k = k0 + place;
      float one = 0;
      if (at < 8 && k < 27) {
        const int u = k % 3;
        const int rest = k / 3;
        const int l = rest % 3;
        const int rest_2 = rest / 3;
        one = filter[at * 27 + l * 3 + u + rest_2 * 9];
      }
      left_tile[place][line] = one;
    }
#pragma unroll
    for (int e_2 = threadIdx.x; e_2 < 1024; e_2 += 256) {
      const int place_2 = e_2 % 16, line_2 = e_2 / 16;
      const int at_2 = column0 + line_2, k_2 = k0 + place_2;
      float one_2 = 0;
      if (at_2 < 50 && k_2 < 27) {
        const int o = at_2 % 5;
        const int rest_3 = at_2 / 5;
        const int n = rest_3 % 5;
        const int rest_4 = rest_3 / 5;
        const int u_2 = k_2 % 3;
        const int rest_5 = k_2 / 3;
        const int l_2 = rest_5 % 3;
        const int rest_6 = rest_5 / 3;
        const long long position = (long long)(n * 2 + l_2 - 1);
        const long long position_2 = (long long)(o * 2 + u_2 - 1);
        const bool holds = ((position >= 0ll) && (position < 9ll)) && ((position_2 >= 0ll) && (position_2 < 9ll));
        const float image_v = holds ? image[rest_4 * 243 + n * 18 + o * 2 + l_2 * 9 + u_2 + rest_6 * 81 - 10] : 0.0f;
        one_2 = holds ? image_v : 0.0f;
      }
      right_tile[place_2][line_2] = one_2;
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 16; ++kk) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += left_tile[kk][thread_row + 16 * i] * right_tile[kk][thread_column + 16 * j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int tile_item = 0; tile_item < 16; ++tile_item) {
    const int row = row0 + thread_row + tile_item / 4 * 16;
    const int column = column0 + thread_column + tile_item % 4 * 16;
    if (row < 8 && column < 50) {
      const int l_3 = column % 5;
      const int rest_7 = column / 5;
      const int j = rest_7 % 5;
      const int rest_8 = rest_7 / 5;
      const float variance_root_v = variance_root[row];
      const float variance = variance_root_v * variance_root_v;
      const float t = (sum[tile_item / 4][tile_item % 4] - mean[row]) * (rsqrtf(variance + 0.5f) * weight[row]);
      const float normed = t + bias[row];
      active[rest_8 * 200 + row * 25 + j * 5 + l_3] = nan_max(normed, 0.0f);
    }
  }
}

// ---- conv_bn_relu_1_max_pool2d ---------------------------------------------------------------------------
// pooled = max_pool2d(active)
// writes pooled: float32[2, 8, 2, 2]
extern "C" __global__ void __launch_bounds__(256)
conv_bn_relu_1_max_pool2d(const float* __restrict__ active, float* __restrict__ pooled) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 64) return;
  const int m = t % 2;
  const int rest = t / 2;
  const int l = rest % 2;
  const int rest_2 = rest / 2;
  const int j = rest_2 % 8;
  const int rest_3 = rest_2 / 8;
  float pooled_2 = __uint_as_float(0xff800000u);
#pragma unroll
  for (int k = 0; k < 2; ++k) {
#pragma unroll
    for (int k_2 = 0; k_2 < 2; ++k_2) {
      const float active_v = active[rest_3 * 200 + j * 25 + l * 10 + m * 2 + k * 5 + k_2];
      pooled_2 = nan_max(pooled_2, active_v);
    }
  }
  pooled[rest_3 * 32 + j * 4 + l * 2 + m] = pooled_2;
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct conv_bn_relu_context conv_bn_relu_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} conv_bn_relu_libraries;
typedef struct {
  const void* image;  // float32[2, 3, 9, 9]
  long long image_shape[4];
  const void* variance_root;  // float32[8]
  long long variance_root_shape[1];
  const void* filter;  // float32[8, 3, 3, 3], constant
  long long filter_shape[4];
  const void* weight;  // float32[8], constant
  long long weight_shape[1];
  const void* bias;  // float32[8], constant
  long long bias_shape[1];
  const void* mean;  // float32[8], constant
  long long mean_shape[1];
  void* pooled;  // float32[2, 8, 2, 2]
} conv_bn_relu_args;

struct conv_bn_relu_context {
  char error[256];
  conv_bn_relu_libraries libraries;
};

namespace {

struct conv_bn_relu_sizes {
  int unused;
};


inline cudaError_t complain(conv_bn_relu_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t solve(conv_bn_relu_context* ctx, const conv_bn_relu_args* args, conv_bn_relu_sizes& n) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->image_shape[0] != 2 || args->image_shape[1] != 3 || args->image_shape[2] != 9 || args->image_shape[3] != 9)
    return complain(ctx, cudaErrorInvalidValue, "the extents of image are not float32[2, 3, 9, 9]");
  if (reinterpret_cast<size_t>(args->image) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "image is not aligned to 16 bytes");
  if (args->variance_root_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of variance_root are not float32[8]");
  if (reinterpret_cast<size_t>(args->variance_root) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "variance_root is not aligned to 16 bytes");
  if (args->filter_shape[0] != 8 || args->filter_shape[1] != 3 || args->filter_shape[2] != 3 || args->filter_shape[3] != 3)
    return complain(ctx, cudaErrorInvalidValue, "the extents of filter are not float32[8, 3, 3, 3]");
  if (reinterpret_cast<size_t>(args->filter) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "filter is not aligned to 16 bytes");
  if (args->weight_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight are not float32[8]");
  if (reinterpret_cast<size_t>(args->weight) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight is not aligned to 16 bytes");
  if (args->bias_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of bias are not float32[8]");
  if (reinterpret_cast<size_t>(args->bias) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "bias is not aligned to 16 bytes");
  if (args->mean_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of mean are not float32[8]");
  if (reinterpret_cast<size_t>(args->mean) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "mean is not aligned to 16 bytes");
  if (reinterpret_cast<size_t>(args->pooled) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "pooled is not aligned to 16 bytes");
  (void)n;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t conv_bn_relu_create(conv_bn_relu_context** ctx, const conv_bn_relu_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  conv_bn_relu_context* made = new conv_bn_relu_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

size_t conv_bn_relu_workspace_bytes(const conv_bn_relu_args* args) {
  (void)args;
  return 1792;
}

size_t conv_bn_relu_prepared_bytes(const conv_bn_relu_args* args) {
  (void)args;
  return 0;
}

cudaError_t conv_bn_relu_prepare(conv_bn_relu_context* ctx, const conv_bn_relu_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t conv_bn_relu_launch(conv_bn_relu_context* ctx, const conv_bn_relu_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  conv_bn_relu_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // features, variance, normed, active
  status = launch(reinterpret_cast<const void*>(conv_bn_relu_0_conv2d_square_batch_norm_relu), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->filter),
                  static_cast<const void*>(args->image),
                  static_cast<const void*>(args->mean),
                  static_cast<const void*>(args->variance_root),
                  static_cast<const void*>(args->weight),
                  static_cast<const void*>(args->bias),
                  static_cast<void*>(static_cast<void*>(work)));
  if (status != cudaSuccess) return complain(ctx, status, "conv_bn_relu_0_conv2d_square_batch_norm_relu could not be launched");
  // pooled
  status = launch(reinterpret_cast<const void*>(conv_bn_relu_1_max_pool2d), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(static_cast<void*>(work)),
                  static_cast<void*>(args->pooled));
  if (status != cudaSuccess) return complain(ctx, status, "conv_bn_relu_1_max_pool2d could not be launched");
  return cudaSuccess;
}

const char* conv_bn_relu_error(const conv_bn_relu_context* ctx) { return ctx ? ctx->error : "no context"; }

void conv_bn_relu_destroy(conv_bn_relu_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
