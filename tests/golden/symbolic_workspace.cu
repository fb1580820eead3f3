// Made by fusec from "symbolic_workspace" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   symbolic_workspace_0_relu
//       reads x 1200 B; writes kept 1200 B
//   symbolic_workspace_1_exp_v
//       reads kept 1200 B; writes y 1200 B
//
// Sizes are at n = 100.

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

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

// ---- symbolic_workspace_0_relu ---------------------------------------------------------------------------
// kept = relu(x)
// writes kept: float32[n, 3]
//   kept[i, j] = x[i, j] < 0.0 ? 0.0 : x[i, j]
// A thread makes 4 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
symbolic_workspace_0_relu(const float* __restrict__ x, float* __restrict__ kept, const int dim_n) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= ((dim_n * 3 + 3) / 4)) return;
  if (t * 4 + 4 <= (dim_n * 3)) {
    const Words<4> x_w = load_words<4>((const uint4*)x + t);
    Words<4> kept_w = {};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float x_v = __uint_as_float(element<32>(x_w, e));
      put_element<32>(kept_w, e, __float_as_uint((x_v < 0.0f) ? 0.0f : x_v));
    }
    store_words((uint4*)kept + t, kept_w);
  } else {
    for (int e = 0; e < (dim_n * 3) - t * 4; ++e) {
      const float x_v = x[t * 4 + e];
      kept[t * 4 + e] = (x_v < 0.0f) ? 0.0f : x_v;
    }
  }
}

// ---- symbolic_workspace_1_exp_v --------------------------------------------------------------------------
// y = exp(kept)
// writes y: float32[n, 3]
//   y[i, j] = exp(kept[i, j])
// A thread makes 4 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
symbolic_workspace_1_exp_v(const float* __restrict__ kept, float* __restrict__ y, const int dim_n) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= ((dim_n * 3 + 3) / 4)) return;
  if (t * 4 + 4 <= (dim_n * 3)) {
    const Words<4> kept_w = load_words<4>((const uint4*)kept + t);
    Words<4> y_w = {};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      put_element<32>(y_w, e, __float_as_uint(expf(__uint_as_float(element<32>(kept_w, e)))));
    }
    store_words((uint4*)y + t, y_w);
  } else {
    for (int e = 0; e < (dim_n * 3) - t * 4; ++e) {
      y[t * 4 + e] = expf(kept[t * 4 + e]);
    }
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct symbolic_workspace_context symbolic_workspace_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} symbolic_workspace_libraries;
typedef struct {
  const void* x;  // float32[n, 3]
  long long x_shape[2];
  void* y;  // float32[n, 3]
} symbolic_workspace_args;

struct symbolic_workspace_context {
  char error[256];
  symbolic_workspace_libraries libraries;
};

namespace {

struct symbolic_workspace_sizes {
  long long n;  // 1 to 1000, a multiple of 1
};

inline long long floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

inline cudaError_t complain(symbolic_workspace_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(symbolic_workspace_context* ctx, const symbolic_workspace_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(symbolic_workspace_context* ctx, const symbolic_workspace_args* args, symbolic_workspace_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  n.n = args->x_shape[0];
  if (n.n < 1 || n.n > 1000)
    return complain(ctx, cudaErrorInvalidValue, "n is not from 1 to 1000, a multiple of 1");
  if (args->x_shape[0] != n.n || args->x_shape[1] != 3)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[n, 3]");
  return cudaSuccess;
}

inline cudaError_t check_pointers(symbolic_workspace_context* ctx, const symbolic_workspace_args* args, const symbolic_workspace_sizes& n) {
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

cudaError_t symbolic_workspace_create(symbolic_workspace_context** ctx, const symbolic_workspace_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  symbolic_workspace_context* made = new symbolic_workspace_context();
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
size_t symbolic_workspace_workspace_bytes(const symbolic_workspace_args* args) {
  symbolic_workspace_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(256 * floor_div(12 * n.n + 255, 256)) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t symbolic_workspace_prepared_bytes(const symbolic_workspace_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t symbolic_workspace_prepare(symbolic_workspace_context* ctx, const symbolic_workspace_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t symbolic_workspace_launch(symbolic_workspace_context* ctx, const symbolic_workspace_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  symbolic_workspace_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  if (!workspace) return complain(ctx, cudaErrorInvalidValue, "no workspace");
  if (reinterpret_cast<size_t>(workspace) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "the workspace is not aligned to 16 bytes");
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // kept
  status = launch(reinterpret_cast<const void*>(symbolic_workspace_0_relu), floor_div(floor_div(3 * n.n + 3, 4) + 127, 128), 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(static_cast<void*>(work)),
                  static_cast<int>(n.n));
  if (status != cudaSuccess) return complain(ctx, status, "symbolic_workspace_0_relu could not be launched");
  // y
  status = launch(reinterpret_cast<const void*>(symbolic_workspace_1_exp_v), floor_div(floor_div(3 * n.n + 3, 4) + 127, 128), 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(static_cast<void*>(work)),
                  static_cast<void*>(args->y),
                  static_cast<int>(n.n));
  if (status != cudaSuccess) return complain(ctx, status, "symbolic_workspace_1_exp_v could not be launched");
  return cudaSuccess;
}

const char* symbolic_workspace_error(const symbolic_workspace_context* ctx) { return ctx ? ctx->error : "no context"; }

void symbolic_workspace_destroy(symbolic_workspace_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
