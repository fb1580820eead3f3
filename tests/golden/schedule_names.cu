// Made by fusec from "schedule_names" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   schedule_names_0_linear_add
//       reads left_tile, sum, lane, e 6640 B; writes warp 960 B
//   schedule_names_1_sort
//       reads order 16 kB; writes line.0, line.1 49 kB
//
// Sizes are at a = 64, b = 64.

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// NaN is greater than everything.
template <class T>
__device__ __forceinline__ bool is_less(T a, T b) { return b != b ? a == a : a < b; }

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

__device__ __forceinline__ void mma_fp16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The order of a line's elements: a stable merge sort of positions by the threads of one block. `before(a, b)` says
// whether element a comes before element b; the result stands in `order`.
template <int kThreads, class Position, class Before>
__device__ __forceinline__ void sort_line(Position* order, Position* other, Position length, Before before) {
  for (Position k = threadIdx.x; k < length; k += kThreads) order[k] = k;
  __syncthreads();
  bool swapped = false;
  for (Position run = 1; run < length; run *= 2) {
    const Position* from = swapped ? other : order;
    Position* to = swapped ? order : other;
    for (Position k = threadIdx.x; k < length; k += kThreads) {
      const Position left = k / (2 * run) * (2 * run);
      const Position middle = left + run < length ? left + run : length;
      const Position end = middle + run < length ? middle + run : length;
      const bool on_left = k < middle;
      const Position mine = from[k];
      // How many of the other run come first: of equal elements, those on the left.
      Position low = on_left ? middle : left, high = on_left ? end : middle;
      const Position start = low;
      while (low < high) {
        const Position half = low + (high - low) / 2;
        if (on_left ? before(from[half], mine) : !before(mine, from[half]))
          low = half + 1;
        else
          high = half;
      }
      to[left + (k - (on_left ? left : middle)) + (low - start)] = mine;
    }
    swapped = !swapped;
    __syncthreads();
  }
  if (swapped)
    for (Position k = threadIdx.x; k < length; k += kThreads) order[k] = other[k];
  __syncthreads();
}

}  // namespace

// ---- schedule_names_0_linear_add -------------------------------------------------------------------------
// warp_row = linear(left_tile, sum, lane)
// warp = add(warp_row, e)
// writes warp: float16[20, 24]
// A block makes a 64x64 tile; 32 of k at a time go through shared memory, products on tensor cores.
extern "C" __global__ void __launch_bounds__(128)
schedule_names_0_linear_add(const fp16* __restrict__ left_tile_2, const fp16* __restrict__ sum_2, const fp16* __restrict__ lane,
         const fp16* __restrict__ e_3, fp16* __restrict__ warp_2) {
  __shared__ __align__(16) unsigned short left_tile[64][40];
  __shared__ __align__(16) unsigned short right_tile[64][40];
  const int tile = blockIdx.x;
  const int column0 = tile % 1 * 64;
  const int row0 = tile / 1 % 1 * 64;
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  float sum[2][4][4] = {};
  for (int k0 = 0; k0 < 64; k0 += 32) {
#pragma unroll
    for (int e = threadIdx.x; e < 256; e += 128) {
      const int place = e % 4 * 8, line = e / 4;
      const int at = row0 + line, k = k0 + place;
      uint4 eight = make_uint4(0, 0, 0, 0);
      if (at < 20 && k < 64) {
        eight = *(const uint4*)(left_tile_2 + (at * 64 + k));
      }
      *(uint4*)&left_tile[line][place] = eight;
    }
#pragma unroll
    for (int e_2 = threadIdx.x; e_2 < 256; e_2 += 128) {
      const int place_2 = e_2 % 4 * 8, line_2 = e_2 / 4;
      const int at_2 = column0 + line_2, k_2 = k0 + place_2;
      uint4 eight_2 = make_uint4(0, 0, 0, 0);
      if (at_2 < 24 && k_2 < 64) {
        eight_2 = *(const uint4*)(sum_2 + (at_2 * 64 + k_2));
      }
      *(uint4*)&right_tile[line_2][place_2] = eight_2;
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned a[2][4], b[4][2];
      const int group = warp_lane / 4, pair = kk + warp_lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const unsigned short (*rows)[40] = left_tile + warp_row + i * 16 + group;
        a[i][0] = *(const unsigned*)&rows[0][pair], a[i][1] = *(const unsigned*)&rows[8][pair];
        a[i][2] = *(const unsigned*)&rows[0][pair + 8], a[i][3] = *(const unsigned*)&rows[8][pair + 8];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const unsigned short* column = right_tile[warp_column + j * 8 + group];
        b[j][0] = *(const unsigned*)&column[pair], b[j][1] = *(const unsigned*)&column[pair + 8];
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_fp16(sum[i][j], a[i], b[j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int tile_item = 0; tile_item < 32; ++tile_item) {
    const int row = row0 + warp_row + tile_item / 16 * 16 + tile_item % 4 / 2 * 8 + warp_lane / 4;
    const int column = column0 + warp_column + tile_item / 4 % 4 * 8 + warp_lane % 4 * 2 + tile_item % 2;
    if (row < 20 && column < 24) {
      const float warp_row_2 = sum[tile_item / 16][tile_item / 4 % 4][tile_item % 4] + from_fp16(lane[column]);
      warp_2[row * 24 + column] = to_fp16(warp_row_2 + from_fp16(e_3[row * 24 + column]));
    }
  }
}

// ---- schedule_names_1_sort -------------------------------------------------------------------------------
// line.0 = sort(order)
extern "C" __global__ void __launch_bounds__(256)
schedule_names_1_sort(const float* __restrict__ order_2, float* __restrict__ line_0, long long* __restrict__ line_1,
         int* __restrict__ orders, const int b) {
  const int line = blockIdx.x;
  const int length = b;
  int* order = orders + 2 * line * length;
  int* other = order + length;
  sort_line<256>(order, other, length, [&](int a, int b_2) {
    return is_less(order_2[b * line + b_2], order_2[b * line + a]);
  });
  for (int k = threadIdx.x; k < b; k += 256) {
    const int chosen = order[k];
    line_0[b * line + k] = order_2[b * line + chosen];
    line_1[b * line + k] = chosen;
  }
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct schedule_names_context schedule_names_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} schedule_names_libraries;
typedef struct {
  const void* left_tile;  // float16[20, 64]
  long long left_tile_shape[2];
  const void* order;  // float32[a, b]
  long long order_shape[2];
  const void* sum;  // float16[24, 64], constant
  long long sum_shape[2];
  const void* lane;  // float16[24], constant
  long long lane_shape[1];
  const void* e;  // float16[20, 24], constant
  long long e_shape[2];
  void* warp;  // float16[20, 24]
  void* line_0;  // float32[a, b]
} schedule_names_args;

struct schedule_names_context {
  char error[256];
  schedule_names_libraries libraries;
};

namespace {

struct schedule_names_sizes {
  long long a;  // 1 to 64, a multiple of 1
  long long b;  // 1 to 64, a multiple of 1
};

inline long long floor_div(long long a, long long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

inline cudaError_t complain(schedule_names_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t solve(schedule_names_context* ctx, const schedule_names_args* args, schedule_names_sizes& n) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  n.a = args->order_shape[0];
  if (n.a < 1 || n.a > 64)
    return complain(ctx, cudaErrorInvalidValue, "a is not from 1 to 64, a multiple of 1");
  n.b = args->order_shape[1];
  if (n.b < 1 || n.b > 64)
    return complain(ctx, cudaErrorInvalidValue, "b is not from 1 to 64, a multiple of 1");
  if (args->left_tile_shape[0] != 20 || args->left_tile_shape[1] != 64)
    return complain(ctx, cudaErrorInvalidValue, "the extents of left_tile are not float16[20, 64]");
  if (reinterpret_cast<size_t>(args->left_tile) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "left_tile is not aligned to 16 bytes");
  if (args->order_shape[0] != n.a || args->order_shape[1] != n.b)
    return complain(ctx, cudaErrorInvalidValue, "the extents of order are not float32[a, b]");
  if (reinterpret_cast<size_t>(args->order) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "order is not aligned to 16 bytes");
  if (args->sum_shape[0] != 24 || args->sum_shape[1] != 64)
    return complain(ctx, cudaErrorInvalidValue, "the extents of sum are not float16[24, 64]");
  if (reinterpret_cast<size_t>(args->sum) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "sum is not aligned to 16 bytes");
  if (args->lane_shape[0] != 24)
    return complain(ctx, cudaErrorInvalidValue, "the extents of lane are not float16[24]");
  if (reinterpret_cast<size_t>(args->lane) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "lane is not aligned to 16 bytes");
  if (args->e_shape[0] != 20 || args->e_shape[1] != 24)
    return complain(ctx, cudaErrorInvalidValue, "the extents of e are not float16[20, 24]");
  if (reinterpret_cast<size_t>(args->e) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "e is not aligned to 16 bytes");
  if (reinterpret_cast<size_t>(args->warp) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "warp is not aligned to 16 bytes");
  if (reinterpret_cast<size_t>(args->line_0) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "line.0 is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t schedule_names_create(schedule_names_context** ctx, const schedule_names_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  schedule_names_context* made = new schedule_names_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

size_t schedule_names_workspace_bytes(const schedule_names_args* args) {
  schedule_names_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(512 * floor_div(8 * n.a * n.b + 255, 256)) : 0;
}

size_t schedule_names_prepared_bytes(const schedule_names_args* args) {
  (void)args;
  return 0;
}

cudaError_t schedule_names_prepare(schedule_names_context* ctx, const schedule_names_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing depends on constants alone
  return cudaSuccess;
}

cudaError_t schedule_names_launch(schedule_names_context* ctx, const schedule_names_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  schedule_names_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status != cudaSuccess) return status;
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // warp_row, warp
  status = launch(reinterpret_cast<const void*>(schedule_names_0_linear_add), 1, 1, 1, dim3(128, 1, 1), 0, stream,
                  static_cast<const void*>(args->left_tile),
                  static_cast<const void*>(args->sum),
                  static_cast<const void*>(args->lane),
                  static_cast<const void*>(args->e),
                  static_cast<void*>(args->warp));
  if (status != cudaSuccess) return complain(ctx, status, "schedule_names_0_linear_add could not be launched");
  // line
  status = launch(reinterpret_cast<const void*>(schedule_names_1_sort), n.a, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(args->order),
                  static_cast<void*>(args->line_0),
                  static_cast<void*>(static_cast<void*>(work)),
                  static_cast<void*>(static_cast<void*>(work + (256 * floor_div(8 * n.a * n.b + 255, 256)))),
                  static_cast<int>(n.b));
  if (status != cudaSuccess) return complain(ctx, status, "schedule_names_1_sort could not be launched");
  return cudaSuccess;
}

const char* schedule_names_error(const schedule_names_context* ctx) { return ctx ? ctx->error : "no context"; }

void schedule_names_destroy(schedule_names_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
