// Made by fusec from "outputs_and_aliases" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   outputs_and_aliases_0_mul_add_mul_sub_and_1_more
//       reads gradient, momentum, weight 432 B; writes norm, momentum_next, weight_next 292 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// The value of lane (this lane ^ mask).
template <class T>
__device__ __forceinline__ T from_lane_xor(T value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ __forceinline__ bool from_lane_xor(bool value, int mask) {
  return __shfl_xor_sync(0xffffffffu, (int)value, mask) != 0;
}
// kCount partial results in shared memory; neighbouring results are in neighbouring banks.
template <class T, int kCount>
struct Partials {
  T value[kCount];
  __device__ __forceinline__ void put(int i, T from) { value[i] = from; }
  __device__ __forceinline__ T get(int i) const { return value[i]; }
};

// Reduces over each kLanes neighbouring lanes, a power of two, in a fixed order; all of them get the result.
template <int kLanes = 32, class Combine, class T>
__device__ __forceinline__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
}

// Reduces over the block; every thread gets the result. The number of warps is a power of two. Each call in a kernel
// has its own kCall and so its own shared memory: no barrier is needed between calls.
template <int kThreads, int kCall, class Combine, class T>
__device__ __forceinline__ T block_reduce(T value, Combine combine) {
  __shared__ Partials<T, kThreads / 32> partial;
  value = warp_reduce(value, combine);
  if (threadIdx.x % 32 == 0) partial.put(threadIdx.x / 32, value);
  __syncthreads();
  value = partial.get(threadIdx.x % (kThreads / 32));
#pragma unroll
  for (int mask = kThreads / 64; mask > 0; mask >>= 1) value = combine(value, from_lane_xor(value, mask));
  return value;
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

// Function objects that combine two partial results of a reduction.
struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
struct Product {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return a * b; }
};
struct Maximum {  // NaN if either is
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return nan_max(a, b); }
};
struct Minimum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const { return nan_min(a, b); }
};
struct Any {
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a || b; }
};
struct All {
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a && b; }
};

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

// ---- outputs_and_aliases_0_mul_add_mul_sub_and_1_more ----------------------------------------------------
// decayed = mul(momentum)
// momentum_next = add(decayed, gradient)
// step = mul(momentum_next)
// weight_next = sub(weight, step)
// norm = vector_norm(gradient)
// writes momentum_next: float32[9, 4]
// writes weight_next: float32[9, 4]
// writes norm: float32[]
extern "C" __global__ void __launch_bounds__(64, 1)
outputs_and_aliases_0_mul_add_mul_sub_and_1_more(const float* __restrict__ gradient, const float* momentum,
         const float* weight, float* __restrict__ norm_v, float* momentum_next,
         float* weight_next) {
  const int lane = threadIdx.x;
  float row_sum = 0.0f;
  if (const int k = lane; k < 9) {
    const Words<4> gradient_w = load_words<4>((const uint4*)gradient + k);
    const Words<4> momentum_w = load_words<4>((const uint4*)momentum + k);
    const Words<4> weight_w = load_words<4>((const uint4*)weight + k);
    Words<4> momentum_next_w = {};
    Words<4> weight_next_w = {};
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float gradient_v = __uint_as_float(element<32>(gradient_w, e));
      const float t = (__uint_as_float(element<32>(momentum_w, e)) * 0.9f) + gradient_v;
      row_sum += gradient_v * gradient_v;
      put_element<32>(momentum_next_w, e, __float_as_uint(t));
      put_element<32>(weight_next_w, e, __float_as_uint(__uint_as_float(element<32>(weight_w, e)) - (t * 0.01f)));
    }
    store_words((uint4*)momentum_next + k, momentum_next_w);
    store_words((uint4*)weight_next + k, weight_next_w);
  }
  row_sum = block_reduce<64, 0>(row_sum, Sum{});
  if (lane == 0) {
    norm_v[0] = sqrtf(row_sum);
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct outputs_and_aliases_context outputs_and_aliases_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} outputs_and_aliases_libraries;
typedef struct {
  const void* weight;  // float32[9, 4]
  long long weight_shape[2];
  const void* momentum;  // float32[9, 4]
  long long momentum_shape[2];
  const void* gradient;  // float32[9, 4]
  long long gradient_shape[2];
  const void* front;  // float16[5]
  long long front_shape[1];
  const void* back;  // float16[5]
  long long back_shape[1];
  void* weight_next;  // float32[9, 4], written into weight's buffer: null or that pointer
  void* momentum_next;  // float32[9, 4], written into momentum's buffer: null or that pointer
  void* norm_v;  // float32[]
  void* gradient_2;  // float32[9, 4]
  void* front_2;  // float16[5], written into back's buffer: null or that pointer
  void* back_2;  // float16[5], written into front's buffer: null or that pointer
} outputs_and_aliases_args;

struct outputs_and_aliases_context {
  char error[256];
  outputs_and_aliases_libraries libraries;
};

namespace {

struct outputs_and_aliases_sizes {
  int unused;
};


inline cudaError_t complain(outputs_and_aliases_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(outputs_and_aliases_context* ctx, const outputs_and_aliases_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(outputs_and_aliases_context* ctx, const outputs_and_aliases_args* args, outputs_and_aliases_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->weight_shape[0] != 9 || args->weight_shape[1] != 4)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight are not float32[9, 4]");
  if (args->momentum_shape[0] != 9 || args->momentum_shape[1] != 4)
    return complain(ctx, cudaErrorInvalidValue, "the extents of momentum are not float32[9, 4]");
  if (args->gradient_shape[0] != 9 || args->gradient_shape[1] != 4)
    return complain(ctx, cudaErrorInvalidValue, "the extents of gradient are not float32[9, 4]");
  if (args->front_shape[0] != 5)
    return complain(ctx, cudaErrorInvalidValue, "the extents of front are not float16[5]");
  if (args->back_shape[0] != 5)
    return complain(ctx, cudaErrorInvalidValue, "the extents of back are not float16[5]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(outputs_and_aliases_context* ctx, const outputs_and_aliases_args* args, const outputs_and_aliases_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->weight)
    return complain(ctx, cudaErrorInvalidValue, "weight is null");
  if (reinterpret_cast<size_t>(args->weight) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight is not aligned to 16 bytes");
  if (!args->momentum)
    return complain(ctx, cudaErrorInvalidValue, "momentum is null");
  if (reinterpret_cast<size_t>(args->momentum) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "momentum is not aligned to 16 bytes");
  if (!args->gradient)
    return complain(ctx, cudaErrorInvalidValue, "gradient is null");
  if (reinterpret_cast<size_t>(args->gradient) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "gradient is not aligned to 16 bytes");
  if (!args->front)
    return complain(ctx, cudaErrorInvalidValue, "front is null");
  if (reinterpret_cast<size_t>(args->front) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "front is not aligned to 16 bytes");
  if (!args->back)
    return complain(ctx, cudaErrorInvalidValue, "back is null");
  if (reinterpret_cast<size_t>(args->back) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "back is not aligned to 16 bytes");
  if (args->weight_next && args->weight_next != args->weight)
    return complain(ctx, cudaErrorInvalidValue, "weight_next is written into the buffer of weight");
  if (args->momentum_next && args->momentum_next != args->momentum)
    return complain(ctx, cudaErrorInvalidValue, "momentum_next is written into the buffer of momentum");
  if (!args->norm_v)
    return complain(ctx, cudaErrorInvalidValue, "norm is null");
  if (reinterpret_cast<size_t>(args->norm_v) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "norm is not aligned to 16 bytes");
  if (!args->gradient_2)
    return complain(ctx, cudaErrorInvalidValue, "gradient is null");
  if (reinterpret_cast<size_t>(args->gradient_2) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "gradient is not aligned to 16 bytes");
  if (args->front_2 && args->front_2 != args->back)
    return complain(ctx, cudaErrorInvalidValue, "front is written into the buffer of back");
  if (args->back_2 && args->back_2 != args->front)
    return complain(ctx, cudaErrorInvalidValue, "back is written into the buffer of front");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t outputs_and_aliases_create(outputs_and_aliases_context** ctx, const outputs_and_aliases_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  outputs_and_aliases_context* made = new outputs_and_aliases_context();
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
size_t outputs_and_aliases_workspace_bytes(const outputs_and_aliases_args* args) {
  outputs_and_aliases_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(512) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t outputs_and_aliases_prepared_bytes(const outputs_and_aliases_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t outputs_and_aliases_prepare(outputs_and_aliases_context* ctx, const outputs_and_aliases_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t outputs_and_aliases_launch(outputs_and_aliases_context* ctx, const outputs_and_aliases_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  outputs_and_aliases_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  if (!workspace) return complain(ctx, cudaErrorInvalidValue, "no workspace");
  if (reinterpret_cast<size_t>(workspace) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "the workspace is not aligned to 16 bytes");
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // decayed, momentum_next, step, weight_next, norm
  status = launch(reinterpret_cast<const void*>(outputs_and_aliases_0_mul_add_mul_sub_and_1_more), 1, 1, 1, dim3(64, 1, 1), 0, stream,
                  static_cast<const void*>(args->gradient),
                  static_cast<const void*>(args->momentum),
                  static_cast<const void*>(args->weight),
                  static_cast<void*>(args->norm_v),
                  static_cast<void*>(const_cast<void*>(args->momentum)),
                  static_cast<void*>(const_cast<void*>(args->weight)));
  if (status != cudaSuccess) return complain(ctx, status, "outputs_and_aliases_0_mul_add_mul_sub_and_1_more could not be launched");
  status = cudaMemcpyAsync(args->gradient_2, args->gradient, size_t(144), cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return complain(ctx, status, "a copy could not be enqueued");
  status = cudaMemcpyAsync(static_cast<void*>(work), args->front, size_t(10), cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return complain(ctx, status, "a copy could not be enqueued");
  status = cudaMemcpyAsync(static_cast<void*>(work + (256)), args->back, size_t(10), cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return complain(ctx, status, "a copy could not be enqueued");
  status = cudaMemcpyAsync(const_cast<void*>(args->back), static_cast<void*>(work), size_t(10), cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return complain(ctx, status, "a copy could not be enqueued");
  status = cudaMemcpyAsync(const_cast<void*>(args->front), static_cast<void*>(work + (256)), size_t(10), cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return complain(ctx, status, "a copy could not be enqueued");
  return cudaSuccess;
}

const char* outputs_and_aliases_error(const outputs_and_aliases_context* ctx) { return ctx ? ctx->error : "no context"; }

void outputs_and_aliases_destroy(outputs_and_aliases_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
