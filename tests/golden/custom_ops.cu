// Made by fusec from "custom_ops" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   custom_ops_0_abs_v_acme_quick_gate
//       reads x, slope 432 B; writes gated 384 B
//   custom_ops_1_sqrt_v
//       reads ordered 384 B; writes y 384 B

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

// 2^x; results below 2^-126 become 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// sigmoid of x = 1 / (1 + 2^(-x log2 e)); results below 2^-126 become 0.
__device__ __forceinline__ float reciprocal_from_one(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float sigmoid(float x) {
  return reciprocal_from_one(__fadd_rn(1.0f, exp2_fast(x * -1.44269504f)));
}
__device__ __forceinline__ double sigmoid(double x) { return 1.0 / __dadd_rn(1.0, exp(-x)); }

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

// ---- custom_ops_0_abs_v_acme_quick_gate ------------------------------------------------------------------
// before = abs(x)
// gated = acme.quick_gate(before, slope)
// writes gated: float32[8, 12]
//   gated[i, j] = (abs(x[i, j]) * sigmoid(1.702 * abs(x[i, j]))) + max(slope[j], 0.0)
// A thread makes 4 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
custom_ops_0_abs_v_acme_quick_gate(const float* __restrict__ x, const float* __restrict__ slope, float* __restrict__ gated) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= 24) return;
  const int j = t % 3;
  const int rest = t / 3;
  const Words<4> x_w = load_words<4>(x + (rest * 12 + j * 4));
  const Words<4> slope_w = load_words<4>((const uint4*)slope + j);
  Words<4> gated_w = {};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float x_v = __uint_as_float(element<32>(x_w, e));
    const float before = fabsf(x_v);
    const float gated_2 = (before * sigmoid(1.702f * before)) +
        nan_max(__uint_as_float(element<32>(slope_w, e)), 0.0f);
    put_element<32>(gated_w, e, __float_as_uint(gated_2));
  }
  store_words(gated + (rest * 12 + j * 4), gated_w);
}

// ---- custom_ops_1_sqrt_v ---------------------------------------------------------------------------------
// y = sqrt(ordered)
// writes y: float32[8, 12]
//   y[i, j] = sqrt(ordered[i, j])
// A thread makes 4 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
custom_ops_1_sqrt_v(const float* __restrict__ ordered, float* __restrict__ y) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= 24) return;
  const Words<4> ordered_w = load_words<4>((const uint4*)ordered + t);
  Words<4> y_w = {};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    put_element<32>(y_w, e, __float_as_uint(sqrtf(__uint_as_float(element<32>(ordered_w, e)))));
  }
  store_words((uint4*)y + t, y_w);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct custom_ops_context custom_ops_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} custom_ops_libraries;
typedef struct {
  const void* x;  // float32[8, 12]
  long long x_shape[2];
  const void* slope;  // float32[12]
  long long slope_shape[1];
  void* y;  // float32[8, 12]
} custom_ops_args;

// Launchers of custom ops; the program that links this file defines them.
extern "C" cudaError_t acme_bitonic_sort(const void* const* inputs, void* const* outputs, const long long* extents,
                              const char* attrs_json, cudaStream_t stream);

struct custom_ops_context {
  char error[256];
  custom_ops_libraries libraries;
};

namespace {

struct custom_ops_sizes {
  int unused;
};


inline cudaError_t complain(custom_ops_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(custom_ops_context* ctx, const custom_ops_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(custom_ops_context* ctx, const custom_ops_args* args, custom_ops_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 8 || args->x_shape[1] != 12)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[8, 12]");
  if (args->slope_shape[0] != 12)
    return complain(ctx, cudaErrorInvalidValue, "the extents of slope are not float32[12]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(custom_ops_context* ctx, const custom_ops_args* args, const custom_ops_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->slope)
    return complain(ctx, cudaErrorInvalidValue, "slope is null");
  if (reinterpret_cast<size_t>(args->slope) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "slope is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t custom_ops_create(custom_ops_context** ctx, const custom_ops_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  custom_ops_context* made = new custom_ops_context();
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
size_t custom_ops_workspace_bytes(const custom_ops_args* args) {
  custom_ops_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(1024) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t custom_ops_prepared_bytes(const custom_ops_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t custom_ops_prepare(custom_ops_context* ctx, const custom_ops_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t custom_ops_launch(custom_ops_context* ctx, const custom_ops_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  custom_ops_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  if (!workspace) return complain(ctx, cudaErrorInvalidValue, "no workspace");
  if (reinterpret_cast<size_t>(workspace) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "the workspace is not aligned to 16 bytes");
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // before, gated
  status = launch(reinterpret_cast<const void*>(custom_ops_0_abs_v_acme_quick_gate), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->slope),
                  static_cast<void*>(static_cast<void*>(work)));
  if (status != cudaSuccess) return complain(ctx, status, "custom_ops_0_abs_v_acme_quick_gate could not be launched");
  // sorted_rows
  {
    const void* const inputs[] = {static_cast<void*>(work)};
    void* const outputs[] = {static_cast<void*>(work + (512))};
    const long long extents[] = {8, 12, 8, 12};
    status = ::acme_bitonic_sort(inputs, outputs, extents, "{\"descending\":true,\"symbol\":\"acme_bitonic_sort\"}", stream);
  }
  if (status != cudaSuccess) return complain(ctx, status, "the launcher of node sorted_rows failed");
  // y
  status = launch(reinterpret_cast<const void*>(custom_ops_1_sqrt_v), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(static_cast<void*>(work + (512))),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "custom_ops_1_sqrt_v could not be launched");
  return cudaSuccess;
}

const char* custom_ops_error(const custom_ops_context* ctx) { return ctx ? ctx->error : "no context"; }

void custom_ops_destroy(custom_ops_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
