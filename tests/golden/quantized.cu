// Made by fusec from "quantized" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   quantized_0_quantize_static_quant_linear_relu
//       reads x, weight, weight_scale 1088 B; writes active 256 B
//   quantized_1_dequantize_dequantize_addcmul
//       reads x, eight_bit, four_bit, eight_bit_scale, block_scale 740 B; writes mixed 512 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// The magnitude's bits in a format of kMantissa bits and this bias, rounded to nearest even; may exceed the format's
// greatest value, which the caller checks. x is finite.
template <int kMantissa, int kBias>
__device__ __forceinline__ unsigned narrow_magnitude(float x) {
  const unsigned magnitude = __float_as_uint(x) & 0x7fffffffu;
  if ((int)(magnitude >> 23) - 127 < 1 - kBias) {  // subnormal: count units of the last place
    const float unit = __uint_as_float((unsigned)(127 + kMantissa - 1 + kBias) << 23);
    return (unsigned)__float2int_rn(__uint_as_float(magnitude) * unit);
  }
  constexpr int kShift = 23 - kMantissa;
  const unsigned rounded = magnitude + ((1u << (kShift - 1)) - 1u) + ((magnitude >> kShift) & 1u);
  return (rounded >> kShift) - ((unsigned)(127 - kBias) << kMantissa);
}

using fp8_e4m3 = unsigned char;
__device__ __forceinline__ float from_fp8_e4m3(unsigned bits) {
  if ((bits & 0x7fu) == 0x7fu) return __uint_as_float(0x7fc00000u);
  const float magnitude = __uint_as_float((bits & 0x7fu) << 20) * __uint_as_float((127u + 120u) << 23);
  return (bits & 0x80u) ? -magnitude : magnitude;
}
__device__ __forceinline__ fp8_e4m3 to_fp8_e4m3(float x) {  // beyond 448: NaN
  const unsigned sign = (__float_as_uint(x) >> 24) & 0x80u;
  if (!(fabsf(x) <= 464.0f)) return (fp8_e4m3)(sign | 0x7fu);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (fp8_e4m3)pair;
#else
  return (fp8_e4m3)(sign | narrow_magnitude<3, 7>(x));
#endif
}

using int4_pair = unsigned char;  // two to a byte, low nibble first
__device__ __forceinline__ int from_int4(unsigned nibble) { return (int)(nibble << 28) >> 28; }

// Two's complement: sums, differences and products wrap; a division by zero gives 0.
__device__ __forceinline__ int wrap_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
__device__ __forceinline__ int wrap_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
__device__ __forceinline__ int wrap_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
__device__ __forceinline__ int wrap_neg(int a) { return (int)(0u - (unsigned)a); }
__device__ __forceinline__ long long wrap_add(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}
__device__ __forceinline__ long long wrap_sub(long long a, long long b) {
  return (long long)((unsigned long long)a - (unsigned long long)b);
}
__device__ __forceinline__ long long wrap_mul(long long a, long long b) {
  return (long long)((unsigned long long)a * (unsigned long long)b);
}
__device__ __forceinline__ long long wrap_neg(long long a) { return (long long)(0ull - (unsigned long long)a); }

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

// Consecutive elements as 32-bit words: one access of 4, 8 or 16 bytes each.
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
// Element e of kBits bits, and putting one into words that begin as 0.
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

// ---- quantized_0_quantize_static_quant_linear_relu -------------------------------------------------------
// codes = quantize(x, step, zero)
// product = static_quant_linear(codes, weight, weight_scale, step, zero)
// active = relu(product)
// writes active: float32[4, 16]
// A block makes a 64x64 tile; 16 of k at a time go through shared memory.
extern "C" __global__ void __launch_bounds__(256)
quantized_0_quantize_static_quant_linear_relu(const float* __restrict__ x, const signed char* __restrict__ weight,
         const float* __restrict__ weight_scale, float* __restrict__ active) {
  __shared__ __align__(16) int left_tile[16][65];
  __shared__ __align__(16) int right_tile[16][65];
  const int tile = blockIdx.x;
  const int column0 = tile % 1 * 64;
  const int row0 = tile / 1 % 1 * 64;
  const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;
  int sum[4][4] = {};
  for (int k0 = 0; k0 < 32; k0 += 16) {
#pragma unroll
    for (int e = threadIdx.x; e < 1024; e += 256) {
      const int place = e % 16, line = e / 16;
      const int at = row0 + line, k = k0 + place;
      int one = 0;
      if (at < 4 && k < 32) {
        const float t = nan_max(rintf(x[at * 32 + k] / 0.0625f) + 3.0f, -128.0f);
        const int codes = (int)(signed char)((int)nan_min(t, 127.0f));
        one = wrap_sub(codes, 3);
      }
      left_tile[place][line] = one;
    }
#pragma unroll
    for (int e_2 = threadIdx.x; e_2 < 1024; e_2 += 256) {
      const int place_2 = e_2 % 16, line_2 = e_2 / 16;
      const int at_2 = column0 + line_2, k_2 = k0 + place_2;
      int one_2 = 0;
      if (at_2 < 16 && k_2 < 32) {
        one_2 = (int)weight[at_2 * 32 + k_2];
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
    if (row < 4 && column < 16) {
      const float product = (((float)sum[tile_item / 4][tile_item % 4]) * 0.0625f) * weight_scale[column];
      active[row * 16 + column] = nan_max(product, 0.0f);
    }
  }
}

// ---- quantized_1_dequantize_dequantize_addcmul -----------------------------------------------------------
// from_eight = dequantize(eight_bit, eight_bit_scale)
// from_four = dequantize(four_bit, block_scale)
// mixed = addcmul(x, from_eight, from_four)
// writes mixed: float32[4, 32]
extern "C" __global__ void __launch_bounds__(128)
quantized_1_dequantize_dequantize_addcmul(const float* __restrict__ x, const fp8_e4m3* __restrict__ eight_bit,
         const int4_pair* __restrict__ four_bit, const float* __restrict__ eight_bit_scale,
         const float* __restrict__ block_scale, float* __restrict__ mixed) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= 16) return;
  const Words<8> x_w = load_words<8>(x + (t * 8));
  const Words<2> eight_bit_w = load_words<2>(eight_bit + (t * 8));
  const Words<1> four_bit_w = load_words<1>(four_bit + (t * 4));
  Words<8> mixed_w = {};
  const float eight_bit_scale_v = eight_bit_scale[0];
  const float block_scale_v = block_scale[(t / 4) * 2 + ((t % 4) / 2)];
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const float from_eight = from_fp8_e4m3(element<8>(eight_bit_w, e)) * eight_bit_scale_v;
    const float from_four = ((float)from_int4(element<4>(four_bit_w, e))) * block_scale_v;
    put_element<32>(mixed_w, e, __float_as_uint(__uint_as_float(element<32>(x_w, e)) + (from_eight * from_four)));
  }
  store_words(mixed + (t * 8), mixed_w);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct quantized_context quantized_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} quantized_libraries;
typedef struct {
  const void* x;  // float32[4, 32]
  long long x_shape[2];
  const void* weight;  // int8[16, 32], constant
  long long weight_shape[2];
  const void* weight_scale;  // float32[16], constant
  long long weight_scale_shape[1];
  const void* eight_bit;  // float8_e4m3fn[4, 32], constant
  long long eight_bit_shape[2];
  const void* eight_bit_scale;  // float32[], constant
  const void* four_bit;  // int4[4, 32], constant
  long long four_bit_shape[2];
  const void* block_scale;  // float32[4, 2], constant
  long long block_scale_shape[2];
  void* active;  // float32[4, 16]
  void* mixed;  // float32[4, 32]
} quantized_args;

struct quantized_context {
  char error[256];
  quantized_libraries libraries;
};

namespace {

struct quantized_sizes {
  int unused;
};


inline cudaError_t complain(quantized_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t solve(quantized_context* ctx, const quantized_args* args, quantized_sizes& n) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->x_shape[0] != 4 || args->x_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[4, 32]");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (args->weight_shape[0] != 16 || args->weight_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight are not int8[16, 32]");
  if (reinterpret_cast<size_t>(args->weight) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight is not aligned to 16 bytes");
  if (args->weight_scale_shape[0] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight_scale are not float32[16]");
  if (reinterpret_cast<size_t>(args->weight_scale) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight_scale is not aligned to 16 bytes");
  if (args->eight_bit_shape[0] != 4 || args->eight_bit_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of eight_bit are not float8_e4m3fn[4, 32]");
  if (reinterpret_cast<size_t>(args->eight_bit) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "eight_bit is not aligned to 16 bytes");
  if (reinterpret_cast<size_t>(args->eight_bit_scale) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "eight_bit_scale is not aligned to 16 bytes");
  if (args->four_bit_shape[0] != 4 || args->four_bit_shape[1] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of four_bit are not int4[4, 32]");
  if (reinterpret_cast<size_t>(args->four_bit) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "four_bit is not aligned to 16 bytes");
  if (args->block_scale_shape[0] != 4 || args->block_scale_shape[1] != 2)
    return complain(ctx, cudaErrorInvalidValue, "the extents of block_scale are not float32[4, 2]");
  if (reinterpret_cast<size_t>(args->block_scale) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "block_scale is not aligned to 16 bytes");
  if (reinterpret_cast<size_t>(args->active) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "active is not aligned to 16 bytes");
  if (reinterpret_cast<size_t>(args->mixed) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "mixed is not aligned to 16 bytes");
  (void)n;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t quantized_create(quantized_context** ctx, const quantized_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  quantized_context* made = new quantized_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

size_t quantized_workspace_bytes(const quantized_args* args) {
  (void)args;
  return 0;
}

size_t quantized_prepared_bytes(const quantized_args* args) {
  (void)args;
  return 0;
}

cudaError_t quantized_prepare(quantized_context* ctx, const quantized_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t quantized_launch(quantized_context* ctx, const quantized_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  quantized_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // codes, product, active
  status = launch(reinterpret_cast<const void*>(quantized_0_quantize_static_quant_linear_relu), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->weight),
                  static_cast<const void*>(args->weight_scale),
                  static_cast<void*>(args->active));
  if (status != cudaSuccess) return complain(ctx, status, "quantized_0_quantize_static_quant_linear_relu could not be launched");
  // from_eight, from_four, mixed
  status = launch(reinterpret_cast<const void*>(quantized_1_dequantize_dequantize_addcmul), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->eight_bit),
                  static_cast<const void*>(args->four_bit),
                  static_cast<const void*>(args->eight_bit_scale),
                  static_cast<const void*>(args->block_scale),
                  static_cast<void*>(args->mixed));
  if (status != cudaSuccess) return complain(ctx, status, "quantized_1_dequantize_dequantize_addcmul could not be launched");
  return cudaSuccess;
}

const char* quantized_error(const quantized_context* ctx) { return ctx ? ctx->error : "no context"; }

void quantized_destroy(quantized_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
