// Made by fusec from "rope" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   rope_0_concat_cos_v_mul_chunk_and_5_more
//       reads q, angle 73 kB; writes y 131 kB
//       or rope_1_concat_cos_v_mul_chunk_and_5_more_guarded, where tokens <= 4194176
//
// Sizes are at tokens = 64.

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

// Converts float16 element e to float. The halves of the word are named as 16-bit registers, which needs no shift.
template <int kCount>
__device__ __forceinline__ float fp16_element(const Words<kCount>& words, int e) {
  unsigned short low, high;
  asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(words.w[e / 2]));
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(e % 2 == 0 ? low : high));
  return x;
}

}  // namespace

// ---- rope_0_concat_cos_v_mul_chunk_and_5_more ------------------------------------------------------------
// angles = concat(angle, angle)
// cosine = cos(angles)
// along = mul(q, cosine)
// halves.0 = chunk(q)
// negative = neg(halves.1)
// turned = concat(negative, halves.0)
// sine = sin(angles)
// across = mul(turned, sine)
// y = add(along, across)
// writes y: float32[2, tokens, 4, 64]
// A thread makes 4 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
rope_0_concat_cos_v_mul_chunk_and_5_more(const fp16* __restrict__ q, const float* __restrict__ angle, float* __restrict__ y,
         const long long tokens) {
  const long long t = (long long)blockIdx.x * 128 + threadIdx.x;
  if (t >= (tokens * 64)) return;
  const long long m = t % 8;
  const long long rest = t / 8;
  const long long l = rest % 4;
  const long long rest_2 = rest / 4;
  const long long j = rest_2 % tokens;
  const long long rest_3 = rest_2 / tokens;
  const Words<2> q_w = load_words<2>(q + (tokens * rest_3 * 256 + j * 256 + l * 64 + m * 4));
  const Words<4> angle_w = load_words<4>(angle + (j * 32 + m * 4));
  const Words<2> q_w_2 = load_words<2>(q + (tokens * rest_3 * 256 + j * 256 + l * 64 + m * 4 + 32));
  Words<4> y_w = {};
  Words<4> y_w_2 = {};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float halves_0 = fp16_element(q_w, e);
    const float angles = __uint_as_float(element<32>(angle_w, e));
    const float cosine = cosf(angles);
    const float along = halves_0 * cosine;
    const float halves_1 = fp16_element(q_w_2, e);
    const float negative = -halves_1;
    const float sine = sinf(angles);
    const float across = negative * sine;
    const float along_2 = halves_1 * cosine;
    const float across_2 = halves_0 * sine;
    put_element<32>(y_w, e, __float_as_uint(along + across));
    put_element<32>(y_w_2, e, __float_as_uint(along_2 + across_2));
  }
  store_words(y + (tokens * rest_3 * 256 + j * 256 + l * 64 + m * 4), y_w);
  store_words(y + (tokens * rest_3 * 256 + j * 256 + l * 64 + m * 4 + 32), y_w_2);
}

// ---- rope_1_concat_cos_v_mul_chunk_and_5_more_guarded ----------------------------------------------------
// Where tokens <= 4194176:
// angles = concat(angle, angle)
// cosine = cos(angles)
// along = mul(q, cosine)
// halves.0 = chunk(q)
// negative = neg(halves.1)
// turned = concat(negative, halves.0)
// sine = sin(angles)
// across = mul(turned, sine)
// y = add(along, across)
// writes y: float32[2, tokens, 4, 64]
// A thread makes 4 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
rope_1_concat_cos_v_mul_chunk_and_5_more_guarded(const fp16* __restrict__ q, const float* __restrict__ angle, float* __restrict__ y, const int tokens) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= (tokens * 64)) return;
  const int m = t % 8;
  const int rest = t / 8;
  const int l = rest % 4;
  const int rest_2 = rest / 4;
  const int j = rest_2 % tokens;
  const int rest_3 = rest_2 / tokens;
  const Words<2> q_w = load_words<2>(q + (tokens * rest_3 * 256 + j * 256 + l * 64 + m * 4));
  const Words<4> angle_w = load_words<4>(angle + (j * 32 + m * 4));
  const Words<2> q_w_2 = load_words<2>(q + (tokens * rest_3 * 256 + j * 256 + l * 64 + m * 4 + 32));
  Words<4> y_w = {};
  Words<4> y_w_2 = {};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float halves_0 = fp16_element(q_w, e);
    const float angles = __uint_as_float(element<32>(angle_w, e));
    const float cosine = cosf(angles);
    const float along = halves_0 * cosine;
    const float halves_1 = fp16_element(q_w_2, e);
    const float negative = -halves_1;
    const float sine = sinf(angles);
    const float across = negative * sine;
    const float along_2 = halves_1 * cosine;
    const float across_2 = halves_0 * sine;
    put_element<32>(y_w, e, __float_as_uint(along + across));
    put_element<32>(y_w_2, e, __float_as_uint(along_2 + across_2));
  }
  store_words(y + (tokens * rest_3 * 256 + j * 256 + l * 64 + m * 4), y_w);
  store_words(y + (tokens * rest_3 * 256 + j * 256 + l * 64 + m * 4 + 32), y_w_2);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct rope_context rope_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} rope_libraries;
typedef struct {
  const void* q;  // float16[2, tokens, 4, 64]
  long long q_shape[4];
  const void* angle;  // float32[tokens, 1, 32]
  long long angle_shape[3];
  void* y;  // float32[2, tokens, 4, 64]
} rope_args;

struct rope_context {
  char error[256];
  rope_libraries libraries;
};

namespace {

struct rope_sizes {
  long long tokens;  // 1 to 2147483647, a multiple of 1
};

inline long long floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

inline cudaError_t complain(rope_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(rope_context* ctx, const rope_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(rope_context* ctx, const rope_args* args, rope_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  n.tokens = args->q_shape[1];
  if (n.tokens < 1 || n.tokens > 2147483647)
    return complain(ctx, cudaErrorInvalidValue, "tokens is not from 1 to 2147483647, a multiple of 1");
  if (args->q_shape[0] != 2 || args->q_shape[1] != n.tokens || args->q_shape[2] != 4 || args->q_shape[3] != 64)
    return complain(ctx, cudaErrorInvalidValue, "the extents of q are not float16[2, tokens, 4, 64]");
  if (args->angle_shape[0] != n.tokens || args->angle_shape[1] != 1 || args->angle_shape[2] != 32)
    return complain(ctx, cudaErrorInvalidValue, "the extents of angle are not float32[tokens, 1, 32]");
  return cudaSuccess;
}

inline cudaError_t check_pointers(rope_context* ctx, const rope_args* args, const rope_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->q)
    return complain(ctx, cudaErrorInvalidValue, "q is null");
  if (reinterpret_cast<size_t>(args->q) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "q is not aligned to 16 bytes");
  if (!args->angle)
    return complain(ctx, cudaErrorInvalidValue, "angle is null");
  if (reinterpret_cast<size_t>(args->angle) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "angle is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t rope_create(rope_context** ctx, const rope_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  rope_context* made = new rope_context();
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
size_t rope_workspace_bytes(const rope_args* args) {
  rope_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t rope_prepared_bytes(const rope_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t rope_prepare(rope_context* ctx, const rope_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t rope_launch(rope_context* ctx, const rope_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  rope_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // angles, cosine, along, halves, negative, turned, sine, across, y
  if (n.tokens <= 4194176) {
  status = launch(reinterpret_cast<const void*>(rope_1_concat_cos_v_mul_chunk_and_5_more_guarded), floor_div(64 * n.tokens + 127, 128), 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->q),
                  static_cast<const void*>(args->angle),
                  static_cast<void*>(args->y),
                  static_cast<int>(n.tokens));
  if (status != cudaSuccess) return complain(ctx, status, "rope_1_concat_cos_v_mul_chunk_and_5_more_guarded could not be launched");
  } else {
  status = launch(reinterpret_cast<const void*>(rope_0_concat_cos_v_mul_chunk_and_5_more), floor_div(64 * n.tokens + 127, 128), 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->q),
                  static_cast<const void*>(args->angle),
                  static_cast<void*>(args->y),
                  static_cast<long long>(n.tokens));
  if (status != cudaSuccess) return complain(ctx, status, "rope_0_concat_cos_v_mul_chunk_and_5_more could not be launched");
  }
  return cudaSuccess;
}

const char* rope_error(const rope_context* ctx) { return ctx ? ctx->error : "no context"; }

void rope_destroy(rope_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
