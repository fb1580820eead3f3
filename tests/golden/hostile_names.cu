// Made by fusec from "* / "model" ? ?/..#error" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   model_error_0_add_mul_tanh_v_add_and_3_more
//       reads float, x" + y,   216 B; writes %s %d $0 {}, a.b 112 B
//
// Sizes are at int = 4.

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

// ---- model_error_0_add_mul_tanh_v_add_and_3_more ---------------------------------------------------------
// * / __syncthreads(); / * = add(float, x" + y)
// line.break. = mul(* / __syncthreads(); / *,  )
// threadIdx = tanh(line.break.)
// gr....e .. = add(threadIdx, float)
// a.b = neg(gr....e ..)
// a_b = exp(a.b)
// %s %d $0 {} = sum(a_b)
// writes a.b: float32[int, 6]
// writes %s %d $0 {}: float32[int]
extern "C" __global__ void __launch_bounds__(32, 32)
model_error_0_add_mul_tanh_v_add_and_3_more(const float* __restrict__ float_v, const float* __restrict__ x_y, const float* __restrict__ x,
         float* __restrict__ s_d_0, float* __restrict__ a_b, const int int_v) {
  const int lane = threadIdx.x % 8;
  const int wanted_row = blockIdx.x * 4 + threadIdx.x / 8;
  const bool active = wanted_row < int_v;  // the others work along, and store nothing
  const int row = active ? wanted_row : int_v - 1;
  float s_d_0_2 = 0.0f;
  if (const int k = lane; k < 3) {
    const Words<2> float_w = load_words<2>(float_v + (row * 6 + k * 2));
    const Words<2> x_y_w = load_words<2>(x_y + (row * 6 + k * 2));
    const Words<2> w = load_words<2>(x + (k * 2));
    Words<2> a_b_w = {};
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float float_v_2 = __uint_as_float(element<32>(float_w, e));
      const float syncthreads = float_v_2 + __uint_as_float(element<32>(x_y_w, e));
      const float line_break = syncthreads * __uint_as_float(element<32>(w, e));
      const float threadIdx_v = tanhf(line_break);
      const float gr_e = threadIdx_v + float_v_2;
      const float a_b_2 = -gr_e;
      s_d_0_2 += expf(a_b_2);
      put_element<32>(a_b_w, e, __float_as_uint(a_b_2));
    }
    if (active) {
      store_words(a_b + (row * 6 + k * 2), a_b_w);
    }
  }
  s_d_0_2 = warp_reduce<8>(s_d_0_2, Sum{});
  if (lane == 0 && active) {
    s_d_0[row] = s_d_0_2;
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct model_error_context model_error_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} model_error_libraries;
typedef struct {
  const void* float_v;  // float32[int, 6]
  long long float_v_shape[2];
  const void* x_y;  // float32[int, 6]
  long long x_y_shape[2];
  const void* x;  // float32[6]
  long long x_shape[1];
  void* s_d_0;  // float32[int]
  void* a_b;  // float32[int, 6]
} model_error_args;

struct model_error_context {
  char error[256];
  model_error_libraries libraries;
};

namespace {

struct model_error_sizes {
  long long int_v;  // 1 to 32, a multiple of 1
};

inline long long floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

inline cudaError_t complain(model_error_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(model_error_context* ctx, const model_error_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  return cudaSuccess;
}

inline cudaError_t solve(model_error_context* ctx, const model_error_args* args, model_error_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  n.int_v = args->float_v_shape[0];
  if (n.int_v < 1 || n.int_v > 32)
    return complain(ctx, cudaErrorInvalidValue, "int is not from 1 to 32, a multiple of 1");
  if (args->float_v_shape[0] != n.int_v || args->float_v_shape[1] != 6)
    return complain(ctx, cudaErrorInvalidValue, "the extents of float are not float32[int, 6]");
  if (args->x_y_shape[0] != n.int_v || args->x_y_shape[1] != 6)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x\" + y are not float32[int, 6]");
  if (args->x_shape[0] != 6)
    return complain(ctx, cudaErrorInvalidValue, "the extents of   are not float32[6]");
  return cudaSuccess;
}

inline cudaError_t check_pointers(model_error_context* ctx, const model_error_args* args, const model_error_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->float_v)
    return complain(ctx, cudaErrorInvalidValue, "float is null");
  if (reinterpret_cast<size_t>(args->float_v) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "float is not aligned to 16 bytes");
  if (!args->x_y)
    return complain(ctx, cudaErrorInvalidValue, "x\" + y is null");
  if (reinterpret_cast<size_t>(args->x_y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x\" + y is not aligned to 16 bytes");
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "  is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "  is not aligned to 16 bytes");
  if (!args->s_d_0)
    return complain(ctx, cudaErrorInvalidValue, "%s %d $0 {} is null");
  if (reinterpret_cast<size_t>(args->s_d_0) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "%s %d $0 {} is not aligned to 16 bytes");
  if (!args->a_b)
    return complain(ctx, cudaErrorInvalidValue, "a.b is null");
  if (reinterpret_cast<size_t>(args->a_b) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "a.b is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t model_error_create(model_error_context** ctx, const model_error_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  model_error_context* made = new model_error_context();
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
size_t model_error_workspace_bytes(const model_error_args* args) {
  model_error_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t model_error_prepared_bytes(const model_error_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t model_error_prepare(model_error_context* ctx, const model_error_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t model_error_launch(model_error_context* ctx, const model_error_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  model_error_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // * / __syncthreads(); / *, line.break., threadIdx, gr....e .., a.b, a_b, %s %d $0 {}
  status = launch(reinterpret_cast<const void*>(model_error_0_add_mul_tanh_v_add_and_3_more), floor_div(n.int_v + 3, 4), 1, 1, dim3(32, 1, 1), 0, stream,
                  static_cast<const void*>(args->float_v),
                  static_cast<const void*>(args->x_y),
                  static_cast<const void*>(args->x),
                  static_cast<void*>(args->s_d_0),
                  static_cast<void*>(args->a_b),
                  static_cast<int>(n.int_v));
  if (status != cudaSuccess) return complain(ctx, status, "model_error_0_add_mul_tanh_v_add_and_3_more could not be launched");
  return cudaSuccess;
}

const char* model_error_error(const model_error_context* ctx) { return ctx ? ctx->error : "no context"; }

void model_error_destroy(model_error_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
