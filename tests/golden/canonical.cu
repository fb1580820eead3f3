// Made by fusec from "canonical" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   canonical_0_index_select_mul_mul_add_and_3_more
//       reads rows, weight, x, table 608 B; writes result 64 B

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

// ---- canonical_0_index_select_mul_mul_add_and_3_more -----------------------------------------------------
// picked = index_select(x, rows)
// scaled = mul(picked, table)
// halved = mul(scaled, half)
// sum = add(weight, halved)
// positive = relu(sum)
// narrow = cast(positive)
// result = reshape(narrow)
// writes result: float16[2, 16]
// A thread makes 8 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
canonical_0_index_select_mul_mul_add_and_3_more(const long long* __restrict__ rows, const float* __restrict__ weight, const float* __restrict__ x,
         const float* __restrict__ table, fp16* __restrict__ result) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= 4) return;
  const Words<8> weight_w = load_words<8>(weight);
  const Words<8> x_w = load_words<8>(x + ((int)max(min(rows[t], 15ll), 0ll) * 8));
  const Words<8> table_w = load_words<8>(table);
  float result_v[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const float scaled = __uint_as_float(element<32>(x_w, e)) * __uint_as_float(element<32>(table_w, e));
    const float halved = scaled * 0.5f;
    const float sum = __uint_as_float(element<32>(weight_w, e)) + halved;
    result_v[e] = (sum < 0.0f) ? 0.0f : sum;
  }
  store_words((uint4*)result + t, fp16_words(result_v));
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct canonical_context canonical_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} canonical_libraries;
typedef struct {
  const void* x;  // float32[16, 8]
  long long x_shape[2];
  const void* weight;  // float32[8], constant
  long long weight_shape[1];
  void* result;  // float16[2, 16]
  void* table;  // float32[8]
} canonical_args;

namespace {
// constant rows: int64[4]
alignas(16) __device__ const unsigned char constant_0[32] = {
    2,0,0,0,0,0,0,0,4,0,0,0,0,0,0,0,7,0,0,0,0,0,0,0,
    12,0,0,0,0,0,0,0,};
// constant table: float32[8]
alignas(16) __device__ const unsigned char constant_1[32] = {
    0,0,128,63,165,10,120,63,64,169,96,63,246,79,59,63,64,81,10,63,239,113,161,62,
    170,222,144,61,34,134,54,190,};
}  // namespace

struct canonical_context {
  char error[256];
  canonical_libraries libraries;
  const void* constants[2];
};

namespace {

struct canonical_sizes {
  int unused;
};


inline cudaError_t complain(canonical_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(canonical_context* ctx, const canonical_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->weight_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight are not float32[8]");
  return cudaSuccess;
}

inline cudaError_t solve(canonical_context* ctx, const canonical_args* args, canonical_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 16 || args->x_shape[1] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[16, 8]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(canonical_context* ctx, const canonical_args* args, const canonical_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->weight)
    return complain(ctx, cudaErrorInvalidValue, "weight is null");
  if (reinterpret_cast<size_t>(args->weight) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight is not aligned to 16 bytes");
  if (!args->result)
    return complain(ctx, cudaErrorInvalidValue, "result is null");
  if (reinterpret_cast<size_t>(args->result) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "result is not aligned to 16 bytes");
  if (!args->table)
    return complain(ctx, cudaErrorInvalidValue, "table is null");
  if (reinterpret_cast<size_t>(args->table) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "table is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t canonical_create(canonical_context** ctx, const canonical_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  canonical_context* made = new canonical_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status == cudaSuccess) status = cudaGetSymbolAddress(const_cast<void**>(&made->constants[0]), constant_0);
  if (status == cudaSuccess) status = cudaGetSymbolAddress(const_cast<void**>(&made->constants[1]), constant_1);
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t canonical_workspace_bytes(const canonical_args* args) {
  canonical_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t canonical_prepared_bytes(const canonical_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t canonical_prepare(canonical_context* ctx, const canonical_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t canonical_launch(canonical_context* ctx, const canonical_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  canonical_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // picked, scaled, halved, sum, positive, narrow, result
  status = launch(reinterpret_cast<const void*>(canonical_0_index_select_mul_mul_add_and_3_more), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(ctx->constants[0]),
                  static_cast<const void*>(args->weight),
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(ctx->constants[1]),
                  static_cast<void*>(args->result));
  if (status != cudaSuccess) return complain(ctx, status, "canonical_0_index_select_mul_mul_add_and_3_more could not be launched");
  status = cudaMemcpyAsync(args->table, ctx->constants[1], size_t(32), cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return complain(ctx, status, "a copy could not be enqueued");
  return cudaSuccess;
}

const char* canonical_error(const canonical_context* ctx) { return ctx ? ctx->error : "no context"; }

void canonical_destroy(canonical_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
