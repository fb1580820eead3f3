// Made by fusec from "layer_norm" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   layer_norm_0_add_layer_norm_relu
//       reads x, residual, weight, bias 3072 B; writes sum, y 2688 B

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

// sum / n, correctly rounded except near the smallest floats. high + low = 1 / n, both positive.
__device__ __forceinline__ float exact_mean(float sum, float high, float low) {
  return __fmaf_rn(sum, high, __fmul_rn(sum, low));
}

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

// ---- layer_norm_0_add_layer_norm_relu --------------------------------------------------------------------
// sum = add(x, residual)
// normed = layer_norm(sum, weight, bias)
// y = relu(normed)
// writes sum: float32[7, 48]
// writes y: float32[7, 48]
extern "C" __global__ void __launch_bounds__(32, 4)
layer_norm_0_add_layer_norm_relu(const float* __restrict__ x, const float* __restrict__ residual, const float* __restrict__ weight,
         const float* __restrict__ bias, float* __restrict__ sum, float* __restrict__ y) {
  const int lane = threadIdx.x % 16;
  const int wanted_row = blockIdx.x * 2 + threadIdx.x / 16;
  const bool active = wanted_row < 7;  // the others work along, and store nothing
  const int row = active ? wanted_row : 7 - 1;
  float row_sum = 0.0f;
  float sum_row[4];
  float t_row[4];
#pragma unroll
  for (int turn = 0; turn < 1; ++turn) {
    const int k = lane + turn * 16;
    if (k < 12) {
      const Words<4> x_w = load_words<4>(x + (row * 48 + k * 4));
      const Words<4> residual_w = load_words<4>(residual + (row * 48 + k * 4));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        sum_row[turn * 4 + e] = __uint_as_float(element<32>(x_w, e)) + __uint_as_float(element<32>(residual_w, e));
        row_sum += sum_row[turn * 4 + e] * 0.015625f;
      }
    }
  }
  row_sum = warp_reduce<16>(row_sum, Sum{});
  const float t = exact_mean(row_sum, 1.3333333f, 7.947286e-08f);
  float row_sum_2 = 0.0f;
#pragma unroll
  for (int turn_2 = 0; turn_2 < 1; ++turn_2) {
    const int k_2 = lane + turn_2 * 16;
    if (k_2 < 12) {
#pragma unroll
      for (int e_2 = 0; e_2 < 4; ++e_2) {
        t_row[turn_2 * 4 + e_2] = sum_row[turn_2 * 4 + e_2] - t;
        row_sum_2 += t_row[turn_2 * 4 + e_2] * t_row[turn_2 * 4 + e_2];
      }
    }
  }
  row_sum_2 = warp_reduce<16>(row_sum_2, Sum{});
  const float t_2 = rsqrtf(exact_mean(row_sum_2, 0.020833332f, 1.2417635e-09f) + 1e-06f);
  if (active) {
#pragma unroll
    for (int turn_3 = 0; turn_3 < 1; ++turn_3) {
      const int j = lane + turn_3 * 16;
      if (j < 12) {
        const Words<4> weight_w = load_words<4>((const uint4*)weight + j);
        const Words<4> bias_w = load_words<4>((const uint4*)bias + j);
        Words<4> sum_w = {};
        Words<4> y_w = {};
#pragma unroll
        for (int e_3 = 0; e_3 < 4; ++e_3) {
          const float t_3 = (t_row[turn_3 * 4 + e_3] * t_2) * __uint_as_float(element<32>(weight_w, e_3));
          const float normed = t_3 + __uint_as_float(element<32>(bias_w, e_3));
          put_element<32>(sum_w, e_3, __float_as_uint(sum_row[turn_3 * 4 + e_3]));
          put_element<32>(y_w, e_3, __float_as_uint((normed < 0.0f) ? 0.0f : normed));
        }
        store_words(sum + (row * 48 + j * 4), sum_w);
        store_words(y + (row * 48 + j * 4), y_w);
      }
    }
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct layer_norm_context layer_norm_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} layer_norm_libraries;
typedef struct {
  const void* x;  // float32[7, 48]
  long long x_shape[2];
  const void* residual;  // float32[7, 48]
  long long residual_shape[2];
  const void* weight;  // float32[48], constant
  long long weight_shape[1];
  const void* bias;  // float32[48], constant
  long long bias_shape[1];
  void* y;  // float32[7, 48]
  void* sum;  // float32[7, 48]
} layer_norm_args;

struct layer_norm_context {
  char error[256];
  layer_norm_libraries libraries;
};

namespace {

struct layer_norm_sizes {
  int unused;
};


inline cudaError_t complain(layer_norm_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(layer_norm_context* ctx, const layer_norm_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->weight_shape[0] != 48)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight are not float32[48]");
  if (args->bias_shape[0] != 48)
    return complain(ctx, cudaErrorInvalidValue, "the extents of bias are not float32[48]");
  return cudaSuccess;
}

inline cudaError_t solve(layer_norm_context* ctx, const layer_norm_args* args, layer_norm_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->x_shape[0] != 7 || args->x_shape[1] != 48)
    return complain(ctx, cudaErrorInvalidValue, "the extents of x are not float32[7, 48]");
  if (args->residual_shape[0] != 7 || args->residual_shape[1] != 48)
    return complain(ctx, cudaErrorInvalidValue, "the extents of residual are not float32[7, 48]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(layer_norm_context* ctx, const layer_norm_args* args, const layer_norm_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->x)
    return complain(ctx, cudaErrorInvalidValue, "x is null");
  if (reinterpret_cast<size_t>(args->x) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "x is not aligned to 16 bytes");
  if (!args->residual)
    return complain(ctx, cudaErrorInvalidValue, "residual is null");
  if (reinterpret_cast<size_t>(args->residual) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "residual is not aligned to 16 bytes");
  if (!args->weight)
    return complain(ctx, cudaErrorInvalidValue, "weight is null");
  if (reinterpret_cast<size_t>(args->weight) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight is not aligned to 16 bytes");
  if (!args->bias)
    return complain(ctx, cudaErrorInvalidValue, "bias is null");
  if (reinterpret_cast<size_t>(args->bias) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "bias is not aligned to 16 bytes");
  if (!args->y)
    return complain(ctx, cudaErrorInvalidValue, "y is null");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  if (!args->sum)
    return complain(ctx, cudaErrorInvalidValue, "sum is null");
  if (reinterpret_cast<size_t>(args->sum) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "sum is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t layer_norm_create(layer_norm_context** ctx, const layer_norm_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  layer_norm_context* made = new layer_norm_context();
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
size_t layer_norm_workspace_bytes(const layer_norm_args* args) {
  layer_norm_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(0) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t layer_norm_prepared_bytes(const layer_norm_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t layer_norm_prepare(layer_norm_context* ctx, const layer_norm_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t layer_norm_launch(layer_norm_context* ctx, const layer_norm_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  layer_norm_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // sum, normed, y
  status = launch(reinterpret_cast<const void*>(layer_norm_0_add_layer_norm_relu), 4, 1, 1, dim3(32, 1, 1), 0, stream,
                  static_cast<const void*>(args->x),
                  static_cast<const void*>(args->residual),
                  static_cast<const void*>(args->weight),
                  static_cast<const void*>(args->bias),
                  static_cast<void*>(args->sum),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "layer_norm_0_add_layer_norm_relu could not be launched");
  return cudaSuccess;
}

const char* layer_norm_error(const layer_norm_context* ctx) { return ctx ? ctx->error : "no context"; }

void layer_norm_destroy(layer_norm_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
