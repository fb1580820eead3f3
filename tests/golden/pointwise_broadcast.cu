// Made by fusec from "pointwise_broadcast" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   pointwise_broadcast_0_gt_add_mul_sigmoid_and_3_more
//       reads x, row, column 1132 B; writes y 960 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

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

// ---- pointwise_broadcast_0_gt_add_mul_sigmoid_and_3_more -------------------------------------------------
// positive = gt(x)
// shifted = add(x, row)
// scaled = mul(shifted, column)
// gate = sigmoid(scaled)
// gated = mul(gate)
// kept = where(positive, gated)
// y = clamp(kept)
// writes y: float32[6, 40]
// A thread makes 4 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
pointwise_broadcast_0_gt_add_mul_sigmoid_and_3_more(const float* __restrict__ x, const float* __restrict__ row, const fp16* __restrict__ column,
         float* __restrict__ y) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= 60) return;
  const int j = t % 10;
  const int rest = t / 10;
  const Words<4> x_w = load_words<4>(x + (rest * 40 + j * 4));
  const Words<4> row_w = load_words<4>((const uint4*)row + j);
  Words<4> y_w = {};
  const float column_v = from_fp16(column[rest]);
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float x_v = __uint_as_float(element<32>(x_w, e));
    const bool positive = x_v > 0.0f;
    const float shifted = x_v + __uint_as_float(element<32>(row_w, e));
    const float scaled = shifted * column_v;
    const float gate = sigmoid(scaled);
    const float gated = gate * 2.0f;
    const float kept = positive ? gated : 0.5f;
    put_element<32>(y_w, e, __float_as_uint(nan_min(nan_max(kept, 0.25f), 1.5f)));
  }
  store_words(y + (rest * 40 + j * 4), y_w);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct pointwise_broadcast_context pointwise_broadcast_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} pointwise_broadcast_libraries;
typedef struct {
  const void* x;  // float32[6, 40]
  long long x_shape[2];
  const void* row;  // float32[40]
  long long row_shape[1];
  const void* column;  // float16[6, 1]
  long long column_shape[2];
  void* y;  // float32[6, 40]
} pointwise_broadcast_args;

struct pointwise_broadcast_context {
  char error[256];
  pointwise_broadcast_libraries libraries;
};

namespace {

struct pointwise_broadcast_sizes {
  int unused;
};


inline cudaError_t complain(pointwise_broadcast_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(pointwise_broadcast_context* ctx, const pointwise_broadcast_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(pointwise_broadcast_context* ctx, const pointwise_broadcast_args* args, pointwise_broadcast_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 6 || args->x_shape[1] != 40)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[6, 40]");
  if (args->row_shape[0] != 40)
    return complain(ctx, cudaErrorInvalidValue, "the extents of row are not float32[40]");
  if (args->column_shape[0] != 6 || args->column_shape[1] != 1)
    return complain(ctx, cudaErrorInvalidValue, "the extents of column are not float16[6, 1]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(pointwise_broadcast_context* ctx, const pointwise_broadcast_args* args, const pointwise_broadcast_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->row)
    return complain(ctx, cudaErrorInvalidValue, "row is null");
  if (reinterpret_cast<size_t>(args->row) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "row is not aligned to 16 bytes");
  if (!args->column)
    return complain(ctx, cudaErrorInvalidValue, "column is null");
  if (reinterpret_cast<size_t>(args->column) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "column is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t pointwise_broadcast_create(pointwise_broadcast_context** ctx, const pointwise_broadcast_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  pointwise_broadcast_context* made = new pointwise_broadcast_context();
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
size_t pointwise_broadcast_workspace_bytes(const pointwise_broadcast_args* args) {
  pointwise_broadcast_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t pointwise_broadcast_prepared_bytes(const pointwise_broadcast_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t pointwise_broadcast_prepare(pointwise_broadcast_context* ctx, const pointwise_broadcast_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t pointwise_broadcast_launch(pointwise_broadcast_context* ctx, const pointwise_broadcast_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  pointwise_broadcast_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // positive, shifted, scaled, gate, gated, kept, y
  status = launch(reinterpret_cast<const void*>(pointwise_broadcast_0_gt_add_mul_sigmoid_and_3_more), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->row),
                  static_cast<const void*>(args->column),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "pointwise_broadcast_0_gt_add_mul_sigmoid_and_3_more could not be launched");
  return cudaSuccess;
}

const char* pointwise_broadcast_error(const pointwise_broadcast_context* ctx) { return ctx ? ctx->error : "no context"; }

void pointwise_broadcast_destroy(pointwise_broadcast_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
