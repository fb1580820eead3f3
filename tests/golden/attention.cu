// Made by fusec from "attention" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   attention_0_mul_scaled_dot_product_atten_transpose_reshape
//       reads q, k, v 3328 B; writes y 768 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// Global to shared memory while the thread goes on; 0 where nothing is there. Copies are complete after wait_for_copies.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool there) {
  const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
  const unsigned long long global = __cvta_generic_to_global(from);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(shared), "l"(global), "r"(there ? 16 : 0));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(shared), "l"(global), "n"(kBytes), "r"(there ? kBytes : 0));
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" : : : "memory"); }

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

// Four 8x8 matrices of 16-bit elements in shared memory, as fragments of mma: lanes 0 to 7 have the addresses of the rows
// of the first matrix, 8 to 15 those of the second, and so on.
__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}

__device__ __forceinline__ void mma_fp16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Elements that are stored by one access.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Neighbours {
  T v[kCount];
};

// Two 16-bit elements in a word, the first in the low half.
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

// 2^x; results below 2^-126 are 0.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// One more tile of scores, in fragments of mma: what was summed up so far shrinks to the new row maximum, the scores
// become exp((score - maximum) * log2_scale / log2(e)). A row is four lanes'; their shares of `total` are added at the end.
// kLarge: scores may be near the greatest float (masks do that), so that their product with the scale is none.
// What is subtracted before exponentials: of a row without any key 0.
__device__ __forceinline__ float shift_of(float greatest) {
  return greatest == __uint_as_float(0xff800000u) ? 0.0f : greatest;
}
__device__ __forceinline__ float weight_of(float score, float greatest, float log2_scale) {
  return exp2_fast((score - shift_of(greatest)) * log2_scale);
}
template <bool kLarge, int kKeys, int kColumns>
__device__ __forceinline__ void softmax_step(float (&score)[kKeys][4], float (&sum)[kColumns][4], float (&greatest)[2],
                                             float (&total)[2], float log2_scale) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float now = greatest[r];
#pragma unroll
    for (int n = 0; n < kKeys; ++n) now = fmaxf(now, fmaxf(score[n][2 * r], score[n][2 * r + 1]));
    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 1));
    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 2));
    const float shift = shift_of(now), shrink = exp2_fast((greatest[r] - shift) * log2_scale);
    greatest[r] = now;
    total[r] *= shrink;
#pragma unroll
    for (int m = 0; m < kColumns; ++m) sum[m][2 * r] *= shrink, sum[m][2 * r + 1] *= shrink;
#pragma unroll
    for (int n = 0; n < 2 * kKeys; ++n) {
      float& s = score[n / 2][2 * r + n % 2];
      s = exp2_fast(kLarge ? (s - shift) * log2_scale : s * log2_scale - shift * log2_scale);
      total[r] += s;
    }
  }
}

}  // namespace

// ---- attention_0_mul_scaled_dot_product_atten_transpose_reshape ------------------------------------------
// turned = mul(q)
// mixed = scaled_dot_product_attention(turned, k, v)
// rows = transpose(mixed)
// y = reshape(rows)
// writes y: float16[1, 12, 32]
// A block takes 64 rows; 64 keys at a time go through shared memory, their softmax is kept as it goes, products on tensor cores.
extern "C" __global__ void __launch_bounds__(128)
attention_0_mul_scaled_dot_product_atten_transpose_reshape(const fp16* __restrict__ q, const fp16* __restrict__ k, const fp16* __restrict__ v,
         fp16* __restrict__ y) {
  __shared__ __align__(16) unsigned short tiles[3072];
  unsigned short* const key_tile = tiles;
  unsigned short* const value_tile = tiles + 1536;
  const int tile = blockIdx.x;
  const int row0 = 0;
  const int batch = tile;
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  const int my_row = row0 + warp * 16 + warp_lane / 4;  // and 8 further down
  const int my_column = warp_lane % 4 * 2;
  for (int e = threadIdx.x; e < 1024; e += 128) {
    const int line = e / 16, place = e % 16;
    const int at = row0 + line;
    unsigned short one = 0;
    if (at < 12) {
      const float turned = from_fp16(to_fp16(from_fp16(q[at * 16 + batch * 192 + place]) * 0.5f));
      one = to_fp16(turned);
    }
    key_tile[line * 24 + place] = one;
  }
  __syncthreads();
  unsigned query[1][4];
  const unsigned query_rows = shared_address(key_tile + (warp * 16 + warp_lane % 16) * 24 + warp_lane / 16 * 8);
  const unsigned key_rows = shared_address(key_tile + (warp_lane / 16 * 8 + warp_lane % 8) * 24 + warp_lane / 8 % 2 * 8);
  const unsigned value_rows = shared_address(value_tile + warp_lane % 16 * 24 + warp_lane / 16 * 8);
#pragma unroll
  for (int e = 0; e < 1; ++e) load_matrices(query[e], query_rows + e * 32);
  float sum[2][4] = {}, greatest[2] = {__uint_as_float(0xff800000u), __uint_as_float(0xff800000u)}, total[2] = {};
  const int last_row = row0 + 63 < 12 ? row0 + 63 : 12 - 1;
  const int keys_end = (last_row + 1);
  const int all_rows_to = (row0 + 1);
  __syncthreads();
#pragma unroll
  for (int e_2 = threadIdx.x; e_2 < 128; e_2 += 128) {
    const int line_2 = e_2 / 2, place_2 = e_2 % 2 * 8;
    const int at_2 = line_2;
    copy_async<16>(key_tile + line_2 * 24 + place_2, k + batch * 320 + place_2 + at_2 * 16, at_2 < 20);
  }
  for (int key0 = 0; key0 < keys_end; key0 += 64) {
    wait_for_copies();
    __syncthreads();  // keys are there, values used up
#pragma unroll
    for (int e_3 = threadIdx.x; e_3 < 128; e_3 += 128) {
      const int line_3 = e_3 / 2, place_3 = e_3 % 2 * 8;
      const int at_3 = key0 + line_3;
      copy_async<16>(value_tile + line_3 * 24 + place_3, v + batch * 320 + place_3 + at_3 * 16, at_3 < 20);
    }
    float score[8][4] = {};
#pragma unroll
    for (int e = 0; e < 1; ++e) {
#pragma unroll
      for (int n = 0; n < 8; n += 2) {
        unsigned b[4];
        load_matrices(b, key_rows + n * 384 + e * 32);
        mma_fp16(score[n], query[e], {b[0], b[1]});
        mma_fp16(score[n + 1], query[e], {b[2], b[3]});
      }
    }
    wait_for_copies();
    __syncthreads();  // values are there, keys used up
    if (key0 + 64 < keys_end) {
#pragma unroll
      for (int e_4 = threadIdx.x; e_4 < 128; e_4 += 128) {
        const int line_4 = e_4 / 2, place_4 = e_4 % 2 * 8;
        const int at_4 = key0 + 64 + line_4;
        copy_async<16>(key_tile + line_4 * 24 + place_4, k + batch * 320 + place_4 + at_4 * 16, at_4 < 20);
      }
    }
    if (key0 + 64 > all_rows_to) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = my_row + r * 8;
#pragma unroll
        for (int n = 0; n < 16; ++n) {
          const int key = key0 + my_column + n / 2 * 8 + n % 2;
          if (key >= (row + 1)) score[n / 2][2 * r + n % 2] = __uint_as_float(0xff800000u);
        }
      }
    }
    softmax_step<false>(score, sum, greatest, total, 0.36067376f);
#pragma unroll
    for (int k = 0; k < 8; k += 2) {
      const unsigned weight[4] = {pack_fp16(score[k][0], score[k][1]), pack_fp16(score[k][2], score[k][3]),
                                  pack_fp16(score[k + 1][0], score[k + 1][1]), pack_fp16(score[k + 1][2], score[k + 1][3])};
#pragma unroll
      for (int n = 0; n < 2; n += 2) {
        unsigned b[4];
        load_matrices_transposed(b, value_rows + k * 384 + n * 16);
        mma_fp16(sum[n], weight, {b[0], b[1]});
        mma_fp16(sum[n + 1], weight, {b[2], b[3]});
      }
    }
  }
  float row_scale[2];
#pragma unroll
  for (int r_2 = 0; r_2 < 2; ++r_2) {
    total[r_2] += __shfl_xor_sync(0xffffffffu, total[r_2], 1);
    total[r_2] += __shfl_xor_sync(0xffffffffu, total[r_2], 2);
    if (greatest[r_2] == __uint_as_float(0xff800000u)) total[r_2] = __uint_as_float(0x7fc00000u);
    const int row_2 = my_row + r_2 * 8;
    row_scale[r_2] = (1.0f / (total[r_2]));
  }
#pragma unroll
  for (int r_3 = 0; r_3 < 2; ++r_3) {
    const int row_3 = my_row + r_3 * 8;
    if (row_3 >= 12) continue;
#pragma unroll
    for (int m = 0; m < 4; m += 2) {
      const int column = my_column + m / 2 * 8 + m % 2;
      const float mixed = from_fp16(to_fp16((sum[m / 2][2 * r_3 + m % 2] * row_scale[r_3])));
      const float mixed_2 = from_fp16(to_fp16((sum[(m + 1) / 2][2 * r_3 + (m + 1) % 2] * row_scale[r_3])));
      *(Neighbours<fp16, 2>*)(y + row_3 * 32 + batch * 16 + column) = {to_fp16(mixed), to_fp16(mixed_2)};
    }
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct attention_context attention_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} attention_libraries;
typedef struct {
  const void* q;  // float16[1, 2, 12, 16]
  long long q_shape[4];
  const void* k;  // float16[1, 2, 20, 16]
  long long k_shape[4];
  const void* v;  // float16[1, 2, 20, 16]
  long long v_shape[4];
  void* y;  // float16[1, 12, 32]
} attention_args;

struct attention_context {
  char error[256];
  attention_libraries libraries;
};

namespace {

struct attention_sizes {
  int unused;
};


inline cudaError_t complain(attention_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t solve(attention_context* ctx, const attention_args* args, attention_sizes& n) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->q_shape[0] != 1 || args->q_shape[1] != 2 || args->q_shape[2] != 12 || args->q_shape[3] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of q are not float16[1, 2, 12, 16]");
  if (reinterpret_cast<size_t>(args->q) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "q is not aligned to 16 bytes");
  if (args->k_shape[0] != 1 || args->k_shape[1] != 2 || args->k_shape[2] != 20 || args->k_shape[3] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of k are not float16[1, 2, 20, 16]");
  if (reinterpret_cast<size_t>(args->k) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "k is not aligned to 16 bytes");
  if (args->v_shape[0] != 1 || args->v_shape[1] != 2 || args->v_shape[2] != 20 || args->v_shape[3] != 16)
    return complain(ctx, cudaErrorInvalidValue, "the extents of v are not float16[1, 2, 20, 16]");
  if (reinterpret_cast<size_t>(args->v) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "v is not aligned to 16 bytes");
  if (reinterpret_cast<size_t>(args->y) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "y is not aligned to 16 bytes");
  (void)n;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t attention_create(attention_context** ctx, const attention_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  attention_context* made = new attention_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

size_t attention_workspace_bytes(const attention_args* args) {
  (void)args;
  return 0;
}

size_t attention_prepared_bytes(const attention_args* args) {
  (void)args;
  return 0;
}

cudaError_t attention_prepare(attention_context* ctx, const attention_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t attention_launch(attention_context* ctx, const attention_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  attention_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // turned, mixed, rows, y
  status = launch(reinterpret_cast<const void*>(attention_0_mul_scaled_dot_product_atten_transpose_reshape), 2, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->q),
                  static_cast<const void*>(args->k),
                  static_cast<const void*>(args->v),
                  static_cast<void*>(args->y));
  if (status != cudaSuccess) return complain(ctx, status, "attention_0_mul_scaled_dot_product_atten_transpose_reshape could not be launched");
  return cudaSuccess;
}

const char* attention_error(const attention_context* ctx) { return ctx ? ctx->error : "no context"; }

void attention_destroy(attention_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
