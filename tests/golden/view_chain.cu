// Made by fusec from "view_chain" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   view_chain_0_transpose_add_permute_flatten_and_2_more
//       reads heads 960 B; writes y 960 B

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

// ---- view_chain_0_transpose_add_permute_flatten_and_2_more -----------------------------------------------
// heads_first = transpose(heads)
// doubled = add(heads_first, heads_first)
// back = permute(doubled)
// merged = flatten(back)
// mirrored = flip(merged)
// y = neg(mirrored)
// writes y: float32[2, 12, 10]
//   y[i, j, l] = -(heads[i, -j + 11, (l / 5), (l % 5)] + heads[i, -j + 11, (l / 5), (l % 5)])
// A thread makes 2 neighbouring elements.
extern "C" __global__ void __launch_bounds__(128)
view_chain_0_transpose_add_permute_flatten_and_2_more(const float* __restrict__ heads, float* __restrict__ y) {
  const int t = blockIdx.x * 128 + threadIdx.x;
  if (t >= 120) return;
  __builtin_assume(t >= 0);
  const int l = t % 5;
  const int rest = t / 5;
  const int j = rest % 12;
  const int rest_2 = rest / 12;
  const Words<2> heads_w = load_words<2>(heads + (rest_2 * 120 - j * 10 + l * 2 + 110));
  Words<2> y_w = {};
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const float heads_first = __uint_as_float(element<32>(heads_w, e));
    const float doubled = heads_first + heads_first;
    put_element<32>(y_w, e, __float_as_uint(-doubled));
  }
  store_words(y + (rest_2 * 120 + j * 10 + l * 2), y_w);
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct view_chain_context view_chain_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} view_chain_libraries;
typedef struct {
  const void* x;  // float32[2, 12, 10]
  long long x_shape[3];
  void* y;  // float32[2, 12, 10]
  void* only_a_view;  // float32[1, 2, 12, 10]
} view_chain_args;

struct view_chain_context {
  char error[256];
  view_chain_libraries libraries;
};

namespace {

struct view_chain_sizes {
  int unused;
};


inline cudaError_t complain(view_chain_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(view_chain_context* ctx, const view_chain_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(view_chain_context* ctx, const view_chain_args* args, view_chain_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 2 || args->x_shape[1] != 12 || args->x_shape[2] != 10)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[2, 12, 10]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(view_chain_context* ctx, const view_chain_args* args, const view_chain_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  if (!args->only_a_view)
    return complain(ctx, cudaErrorInvalidValue, "only_a_view is null");
  if (reinterpret_cast<size_t>(args->only_a_view) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "only_a_view is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t view_chain_create(view_chain_context** ctx, const view_chain_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  view_chain_context* made = new view_chain_context();
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
size_t view_chain_workspace_bytes(const view_chain_args* args) {
  view_chain_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t view_chain_prepared_bytes(const view_chain_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t view_chain_prepare(view_chain_context* ctx, const view_chain_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t view_chain_launch(view_chain_context* ctx, const view_chain_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  view_chain_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // heads, heads_first, doubled, back, merged, mirrored, y
  status = launch(reinterpret_cast<const void*>(view_chain_0_transpose_add_permute_flatten_and_2_more), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "view_chain_0_transpose_add_permute_flatten_and_2_more could not be launched");
  // only_a_view
  status = cudaMemcpyAsync(args->only_a_view, args->x, size_t(960), cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return complain(ctx, status, "a copy could not be enqueued");
  return cudaSuccess;
}

const char* view_chain_error(const view_chain_context* ctx) { return ctx ? ctx->error : "no context"; }

void view_chain_destroy(view_chain_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
