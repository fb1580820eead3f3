// Made by fusec from "symbols" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   symbols_0_add_reshape_relu_div_and_2_more
//       reads x, positions 1280 B; writes averaged, last_tanh 1056 B
//
// Sizes are at batch = 3, tokens = 10.

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

// ---- symbols_0_add_reshape_relu_div_and_2_more -----------------------------------------------------------
// placed = add(x, positions)
// flat = reshape(placed)
// active = relu(flat)
// averaged = div(active)
// writes averaged: float32[batch*tokens, 8]
// A thread makes 4 neighbouring elements.
// placed = add(x, positions)
// last = slice(placed)
// last_tanh = tanh(last)
// writes last_tanh: float32[batch, 1, 8]
//   last_tanh[i, j, l] = tanh(x[i, tokens - 1, l] + positions[tokens - 1, l])
// A thread makes 4 neighbouring elements.
static __device__ __forceinline__ void symbols_0_add_reshape_relu_div_and_2_more_part_0(const int block,
         const float* x,
         const float* __restrict__ positions,
         float* averaged,
         const int batch,
         const int tokens) {
  const int t = block * 128 + threadIdx.x;
  if (t >= (batch * tokens * 2)) return;
  const Words<4> x_w = load_words<4>((const uint4*)x + t);
  const Words<4> positions_w = load_words<4>(positions + ((t % 2) * 4 + ((t / 2) % tokens) * 8));
  Words<4> averaged_w = {};
  const float t_2 = (float)((long long)tokens);
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float placed = __uint_as_float(element<32>(x_w, e)) + __uint_as_float(element<32>(positions_w, e));
    const float active = (placed < 0.0f) ? 0.0f : placed;
    put_element<32>(averaged_w, e, __float_as_uint(active / t_2));
  }
  store_words((uint4*)averaged + t, averaged_w);
}

static __device__ __forceinline__ void symbols_0_add_reshape_relu_div_and_2_more_part_1(const int block,
         const float* __restrict__ x,
         const float* __restrict__ positions,
         float* __restrict__ last_tanh,
         const int batch,
         const int tokens) {
  const int t = block * 128 + threadIdx.x;
  if (t >= (batch * 2)) return;
  const int j = t % 2;
  const int rest = t / 2;
  const Words<4> x_w = load_words<4>(x + (tokens * rest * 8 + tokens * 8 + j * 4 - 8));
  const Words<4> positions_w = load_words<4>(positions + (tokens * 8 + j * 4 - 8));
  Words<4> last_tanh_w = {};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float placed = __uint_as_float(element<32>(x_w, e)) + __uint_as_float(element<32>(positions_w, e));
    put_element<32>(last_tanh_w, e, __float_as_uint(tanhf(placed)));
  }
  store_words(last_tanh + (rest * 8 + j * 4), last_tanh_w);
}

extern "C" __global__ void __launch_bounds__(128)
symbols_0_add_reshape_relu_div_and_2_more(const float* __restrict__ x,
         const float* __restrict__ positions,
         float* __restrict__ averaged,
         const int batch,
         const int tokens,
         const int blocks,
         float* __restrict__ last_tanh) {
  const int block = blockIdx.x;
  if (block < blocks) return symbols_0_add_reshape_relu_div_and_2_more_part_0(block, x, positions, averaged, batch, tokens);
  symbols_0_add_reshape_relu_div_and_2_more_part_1(block - blocks, x, positions, last_tanh, batch, tokens);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct symbols_context symbols_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} symbols_libraries;
typedef struct {
  const void* x;  // float32[batch, tokens, 8]
  long long x_shape[3];
  const void* positions;  // float32[tokens, 8]
  long long positions_shape[2];
  void* averaged;  // float32[batch*tokens, 8]
  void* last_tanh;  // float32[batch, 1, 8]
} symbols_args;

struct symbols_context {
  char error[256];
  symbols_libraries libraries;
};

namespace {

struct symbols_sizes {
  long long batch;  // 1 to 16, a multiple of 1
  long long tokens;  // 2 to 512, a multiple of 2
};

inline long long floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

inline cudaError_t complain(symbols_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(symbols_context* ctx, const symbols_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(symbols_context* ctx, const symbols_args* args, symbols_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  n.batch = args->x_shape[0];
  if (n.batch < 1 || n.batch > 16)
    return complain(ctx, cudaErrorInvalidValue, "batch is not from 1 to 16, a multiple of 1");
  n.tokens = args->x_shape[1];
  if (n.tokens < 2 || n.tokens > 512 || n.tokens % 2 != 0)
    return complain(ctx, cudaErrorInvalidValue, "tokens is not from 2 to 512, a multiple of 2");
  if (args->x_shape[0] != n.batch || args->x_shape[1] != n.tokens || args->x_shape[2] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[batch, tokens, 8]");
  if (args->positions_shape[0] != n.tokens || args->positions_shape[1] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of positions are not float32[tokens, 8]");
  return cudaSuccess;
}

inline cudaError_t check_pointers(symbols_context* ctx, const symbols_args* args, const symbols_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->positions)
    return complain(ctx, cudaErrorInvalidValue, "positions is null");
  if (reinterpret_cast<size_t>(args->positions) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "positions is not aligned to 16 bytes");
  if (!args->averaged)
    return complain(ctx, cudaErrorInvalidValue, "averaged is null");
  if (reinterpret_cast<size_t>(args->averaged) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "averaged is not aligned to 16 bytes");
  if (!args->last_tanh)
    return complain(ctx, cudaErrorInvalidValue, "last_tanh is null");
  if (reinterpret_cast<size_t>(args->last_tanh) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "last_tanh is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t symbols_create(symbols_context** ctx, const symbols_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  symbols_context* made = new symbols_context();
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
size_t symbols_workspace_bytes(const symbols_args* args) {
  symbols_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t symbols_prepared_bytes(const symbols_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t symbols_prepare(symbols_context* ctx, const symbols_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t symbols_launch(symbols_context* ctx, const symbols_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  symbols_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // placed, flat, active, averaged, last, last_tanh
  status = launch(reinterpret_cast<const void*>(symbols_0_add_reshape_relu_div_and_2_more), floor_div(2 * n.batch * n.tokens + 127, 128) + floor_div(2 * n.batch + 127, 128), 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->positions),
                  static_cast<void*>(args->averaged),
                  static_cast<int>(n.batch),
                  static_cast<int>(n.tokens),
                  static_cast<int>(floor_div(2 * n.batch * n.tokens + 127, 128)),
                  static_cast<void*>(args->last_tanh));
  if (status != cudaSuccess) return complain(ctx, status, "symbols_0_add_reshape_relu_div_and_2_more could not be launched");
  return cudaSuccess;
}

const char* symbols_error(const symbols_context* ctx) { return ctx ? ctx->error : "no context"; }

void symbols_destroy(symbols_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
