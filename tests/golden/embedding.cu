// Made by fusec from "embedding" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   embedding_0_embedding_mul_add
//       reads tokens, table, segment 1072 B; writes y 320 B
//
// Sizes are at length = 5.

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

using bf16 = unsigned short;  // storage only; arithmetic is float
__device__ __forceinline__ float from_bf16(unsigned bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ bf16 to_bf16(float x) {
  bf16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
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

// Rounds two floats to 16 bits, and packs them in a word.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ unsigned pack_fp16(float low, float high) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// Rounds values to 16-bit floats and packs them, two per conversion.
template <int kCount>
__device__ __forceinline__ Words<kCount / 2> bf16_words(const float (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) words.w[i] = pack_bf16(values[2 * i], values[2 * i + 1]);
  return words;
}
template <int kCount>
__device__ __forceinline__ Words<kCount / 2> fp16_words(const float (&values)[kCount]) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) words.w[i] = pack_fp16(values[2 * i], values[2 * i + 1]);
  return words;
}

}  // namespace

// ---- embedding_0_embedding_mul_add -----------------------------------------------------------------------
// rows = embedding(table, tokens)
// scaled = mul(rows)
// y = add(scaled, segment)
// writes y: bfloat16[2, length, 16]
// A thread makes 8 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
embedding_0_embedding_mul_add(const long long* __restrict__ tokens, const bf16* __restrict__ table,
         const bf16* __restrict__ segment, bf16* __restrict__ y, const int length) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= (length * 4)) return;
  const int j = t % 2;
  const int rest = t / 2;
  const Words<4> table_w = load_words<4>(table + (j * 8 + (int)max(min(tokens[rest], 29ll), 0ll) * 16));
  const Words<4> segment_w = load_words<4>((const uint4*)segment + j);
  float y_v[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const float scaled = from_bf16(element<16>(table_w, e)) * 4.0f;
    y_v[e] = scaled + from_bf16(element<16>(segment_w, e));
  }
  store_words(y + (rest * 16 + j * 8), bf16_words(y_v));
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct embedding_context embedding_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} embedding_libraries;
typedef struct {
  const void* tokens;  // int64[2, length]
  long long tokens_shape[2];
  const void* table;  // bfloat16[30, 16], constant
  long long table_shape[2];
  void* y;  // bfloat16[2, length, 16]
} embedding_args;

namespace {
// constant segment: bfloat16[16]
alignas(16) __device__ const unsigned char constant_0[32] = {
    0,0,128,63,0,64,64,64,128,64,160,64,192,64,224,64,0,63,192,63,32,64,96,64,
    128,191,0,192,64,192,128,192,};
}  // namespace

struct embedding_context {
  char error[256];
  embedding_libraries libraries;
  const void* constants[1];
};

namespace {

struct embedding_sizes {
  long long length;  // 1 to 64, a multiple of 1
};

inline long long floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

inline cudaError_t complain(embedding_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(embedding_context* ctx, const embedding_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->table_shape[0] != 30 || args->table_shape[1] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of table are not bfloat16[30, 16]");
  return cudaSuccess;
}

inline cudaError_t solve(embedding_context* ctx, const embedding_args* args, embedding_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  n.length = args->tokens_shape[1];
  if (n.length < 1 || n.length > 64)
    return complain(ctx, cudaErrorInvalidValue, "length is not from 1 to 64, a multiple of 1");
  if (args->tokens_shape[0] != 2 || args->tokens_shape[1] != n.length)
    return complain(ctx, cudaErrorInvalidValue, "the extents of tokens are not int64[2, length]");
  return cudaSuccess;
}

inline cudaError_t check_pointers(embedding_context* ctx, const embedding_args* args, const embedding_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->tokens)
    return complain(ctx, cudaErrorInvalidValue, "tokens is null");
  if (reinterpret_cast<size_t>(args->tokens) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "tokens is not aligned to 16 bytes");
  if (!args->table)
    return complain(ctx, cudaErrorInvalidValue, "table is null");
  if (reinterpret_cast<size_t>(args->table) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "table is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t embedding_create(embedding_context** ctx, const embedding_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  embedding_context* made = new embedding_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status == cudaSuccess) status = cudaGetSymbolAddress(const_cast<void**>(&made->constants[0]), constant_0);
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t embedding_workspace_bytes(const embedding_args* args) {
  embedding_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t embedding_prepared_bytes(const embedding_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t embedding_prepare(embedding_context* ctx, const embedding_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t embedding_launch(embedding_context* ctx, const embedding_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  embedding_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // rows, scaled, y
  status = launch(reinterpret_cast<const void*>(embedding_0_embedding_mul_add), floor_div(4 * n.length + 127, 128), 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->tokens),
                  static_cast<const void*>(args->table),
                  static_cast<const void*>(ctx->constants[0]),
                  static_cast<void*>(args->y),
                  static_cast<int>(n.length));
  if (status != cudaSuccess) return complain(ctx, status, "embedding_0_embedding_mul_add could not be launched");
  return cudaSuccess;
}

const char* embedding_error(const embedding_context* ctx) { return ctx ? ctx->error : "no context"; }

void embedding_destroy(embedding_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
