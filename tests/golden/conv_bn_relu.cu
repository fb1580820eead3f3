// Made by fusec from "conv_bn_relu" for sm_80. Compiles with NVRTC (no include path) and with nvcc -arch=sm_80.
//
//   conv_bn_relu_0_conv2d_square_batch_norm_relu
//       reads filter, image, mean, variance_root, weight, ... 2936 B; writes active 1600 B
//   conv_bn_relu_1_max_pool2d
//       reads active 1600 B; writes pooled 256 B

// ---- prelude: only what this file uses ------------------------------------------------------------
namespace {

#if defined(__NVCC__) || defined(__CUDACC_RTC__)
#pragma nv_diag_suppress 177
#endif

// Copies 16 bytes from global to shared memory (cp.async); zeros if not `there`. commit_copies closes a group of
// copies; wait_for_groups waits for all but the newest kNewest groups.
__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(__cvta_generic_to_global(from)));
}
__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0));
}
// Copies 16 bytes of each of kCount lines (cp.async). Destinations are kTo bytes apart; sources are from[i], or kFrom
// bytes apart. `there`: valid bytes of each 16; zeros replace the rest.
template <int kTo, int kAt = 0, class Element, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const Element* const (&from)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from[kAt])));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kAt + 1>(to, from);
}
template <int kTo, int kAt = 0, class Element, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const Element* const (&from)[kCount],
                                           const int (&there)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2], 16, %3;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from[kAt])), "r"(there[kAt]));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kAt + 1>(to, from, there);
}
template <int kTo, int kFrom, int kCount, int kAt = 0>
__device__ __forceinline__ void copy_lines(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2+%3], 16;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from)), "n"(kAt * kFrom));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kFrom, kCount, kAt + 1>(to, from);
}
template <int kTo, int kFrom, int kAt = 0, int kCount>
__device__ __forceinline__ void copy_lines(unsigned to, const void* from, const int (&there)[kCount]) {
  asm volatile("cp.async.cg.shared.global [%0+%1], [%2+%3], 16, %4;"
               :
               : "r"(to), "n"(kAt * kTo), "l"(__cvta_generic_to_global(from)), "n"(kAt * kFrom), "r"(there[kAt]));
  if constexpr (kAt + 1 < kCount) copy_lines<kTo, kFrom, kAt + 1>(to, from, there);
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int kNewest>
__device__ __forceinline__ void wait_for_groups() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kNewest) : "memory");
}

// Copies one element to shared memory asynchronously; 0 if !there.
__device__ __forceinline__ void copy_one(unsigned to, const float* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0));
}

// Dynamic shared memory, with its size set at launch.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

// Entry of the K offset table. `add`: offset in elements. `taps`: the bits of its taps; the element is 0 if a line has
// any of them in `outside`, its taps outside of the image. With a position table: the index of the tap's first line.
struct KOffsetEntry {
  int add;
  unsigned taps;
};

// Copies one element to shared memory asynchronously; 0 if a tap is in `outside`.
__device__ __forceinline__ void gather_one(unsigned to, const float* from, const KOffsetEntry& step, unsigned outside) {
  const bool there = !(step.taps & outside);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from + (there ? step.add : 0))), "r"(there ? 4 : 0));
}

// Byte offset of a unit of 16 bytes in an XOR-swizzled tile with kUnits units per line: ldmatrix reads the same unit of
// eight lines without bank conflicts.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled(int line, int unit) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return 16 * (line * kUnits + (unit ^ (line / kLinesABank % kTurns)));
}

// Byte offset of the swizzled unit that is `lines` lines and `units` units after the one at offset `at`. They must have
// no bits in common with the line and the unit at `at`.
template <int kUnits>
__device__ __forceinline__ unsigned swizzle_advance(unsigned at, int lines, int units) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return (at ^ 16 * (units % kTurns ^ lines / kLinesABank % kTurns)) + 16 * (lines * kUnits + units / kTurns * kTurns);
}

// Loads a lane's operand without tensor cores: fours[i][k] = tile[row_i][depth + k]; rows are columns of the right
// operand. The warp's rows, from `warp` on, are divided into kParts, of which the lane has number `part`:
//   K-major (kAlongDepth)  row_i = warp + first + part + i * kParts
//   MN-major               row_i = warp + first + 4 * (part + i / 4 * kParts) + i % 4
template <bool kAlongDepth, int kUnits, int kParts, int kEach>
__device__ __forceinline__ void load_lanes(float (&fours)[kEach][4], const void* tile, int warp, int first, int depth,
                                           int part) {
  if constexpr (kAlongDepth) {
    const unsigned lane = swizzle_advance<kUnits>(swizzled<kUnits>(warp + part, 0), 0, depth / 4);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const unsigned at = swizzle_advance<kUnits>(lane, first + i * kParts, 0);
      *(float4*)fours[i] = *(const float4*)((const char*)tile + at);
    }
  } else {
    const unsigned lane = swizzle_advance<kUnits>(swizzled<kUnits>(0, warp / 4 + part), depth, 0);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int i = 0; i < kEach; i += 4) {
        const unsigned at = swizzle_advance<kUnits>(lane, k, first / 4 + i / 4 * kParts);
        const float4 four = *(const float4*)((const char*)tile + at);
        fours[i][k] = four.x, fours[i + 1][k] = four.y, fours[i + 2][k] = four.z, fours[i + 3][k] = four.w;
      }
  }
}
// sum[i][j] += a[i][k] * b[j][k], summed over k.
template <int kColumns>
__device__ __forceinline__ void multiply_lanes(float (*sum)[kColumns], const float (&a)[4][4],
                                               const float (&b)[kColumns][4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sum[i][j] += a[i][k] * b[j][k];
}

__device__ __forceinline__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// Loads four 8x8 matrices of 16-bit elements as mma fragments (ldmatrix). Lanes 8 i to 8 i + 7 pass the addresses of
// the rows of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row));
}
template <int kOffset = 0>
__device__ __forceinline__ void load_matrices_transposed(unsigned (&m)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4+%5];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row), "n"(kOffset));
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

// kCount elements that are read or written by one vector access.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Neighbours {
  T v[kCount];
};

// Index of an element of a warp's staged accumulators: 16 rows by kWidth columns in shared memory, rows padded by 8.
// kHalves: the order of columns for lanes that read eight as two vectors, 0-3 8-11 ... (padding of 4) 4-7 12-15 ...
template <int kWidth, bool kHalves = true>
__device__ __forceinline__ constexpr int staged_place(int row, int column) {
  if constexpr (!kHalves && kWidth == 16) return row * 16 + (column ^ (row / 2 % 2 * 8));  // a read takes two rows
  if constexpr (!kHalves) return row * (kWidth + 8) + column;
  return row * (kWidth + 8) + column % 8 / 4 * (kWidth / 2 + 4) + column / 8 * 4 + column % 4;
}
// Stores a lane's mma accumulators of eight columns: two of its row, and two of the row eight below kLower bytes
// further. One asm statement, because NVRTC's time grows with their number.
template <int kAt, int kLower>
__device__ __forceinline__ void store_pairs(unsigned at, const float (&four)[4]) {
  asm volatile("st.shared.v2.f32 [%0+%5], {%1, %2};\nst.shared.v2.f32 [%0+%6], {%3, %4};"
               :
               : "r"(at), "f"(four[0]), "f"(four[1]), "f"(four[2]), "f"(four[3]), "n"(kAt), "n"(kAt + kLower)
               : "memory");
}
template <int kAt, int kLower>
__device__ __forceinline__ void store_pairs(unsigned at, const int (&four)[4]) {
  asm volatile("st.shared.v2.s32 [%0+%5], {%1, %2};\nst.shared.v2.s32 [%0+%6], {%3, %4};"
               :
               : "r"(at), "r"(four[0]), "r"(four[1]), "r"(four[2]), "r"(four[3]), "n"(kAt), "n"(kAt + kLower)
               : "memory");
}
template <int kLater, int kLower, int kAt = 0, class Sum, int kEights>
__device__ __forceinline__ void store_pairs_of_eights(unsigned at, const Sum (&sum)[kEights][4]) {
  store_pairs<kAt * kLater, kLower>(at, sum[kAt]);
  if constexpr (kAt + 1 < kEights) store_pairs_of_eights<kLater, kLower, kAt + 1>(at, sum);
}
// Stages 16 rows of a warp's mma accumulators.
template <bool kHalves, class Sum, int kEights>
__device__ __forceinline__ void stage_sums(Sum* staged, const Sum (&sum)[kEights][4], int lane) {
  constexpr int kWidth = 8 * kEights, kLower = 4 * staged_place<kWidth, kHalves>(8, 0);
  const unsigned first = shared_address(staged + staged_place<kWidth, kHalves>(lane / 4, lane % 4 * 2));
  if constexpr (!kHalves && kWidth == 16) {  // in some rows the second eight columns come first
    const unsigned second = shared_address(staged + staged_place<kWidth, kHalves>(lane / 4, 8 + lane % 4 * 2));
    store_pairs<0, kLower>(first, sum[0]);
    store_pairs<0, kLower>(second, sum[1]);
  } else {
    store_pairs_of_eights<4 * staged_place<kWidth, kHalves>(0, 8), kLower>(first, sum);
  }
}
// The row of group number `item` of eight columns, in an order that has no bank conflicts.
template <int kWidth>
__device__ __forceinline__ int staged_row(int item) {
  if constexpr (kWidth == 32) return item / 16 * 4 + item % 8 / 4 * 2 + item / 8 % 2;
  return item / (kWidth / 8);
}
template <class Sum>
struct EightSums {
  Sum v[8];
};
// Reads eight staged columns; `column` is a multiple of 8.
template <int kWidth, class Sum>
__device__ __forceinline__ EightSums<Sum> eight_staged(const Sum* staged, int row, int column) {
  const auto a = *(const Neighbours<Sum, 4>*)(staged + staged_place<kWidth>(row, column));
  const auto b = *(const Neighbours<Sum, 4>*)(staged + staged_place<kWidth>(row, column + 4));
  return {a.v[0], a.v[1], a.v[2], a.v[3], b.v[0], b.v[1], b.v[2], b.v[3]};
}

// Stages 16 rows (number `piece`) of the accumulators of a warp of 4 by 8 lanes. kRowsApart: a lane's rows are 4 apart,
// else neighbours. kColumnsApart: its columns are 8 apart, else fours of neighbours, 32 apart.
template <bool kHalves, bool kRowsApart, bool kColumnsApart, int kRows, int kColumns>
__device__ __forceinline__ void stage_lane_sums(float* staged, const float (&sum)[kRows][kColumns], int piece, int lane) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int row = kRowsApart ? lane / 8 + 4 * i : lane / 8 * 4 + i;
      const int column = kColumnsApart ? lane % 8 + 8 * j : lane % 8 * 4 + j / 4 * 32 + j % 4;
      staged[staged_place<8 * kColumns, kHalves>(row, column)] = sum[4 * piece + i][j];
    }
}

// The position of tile number `tile` among `down` by `across` output tiles. Bands of kHeight tile rows follow one
// another, each column by column, so that concurrent blocks share both operands' lines in the L2 cache.
struct TilePlace {
  int row, column;
};
template <int kHeight>
__device__ __forceinline__ TilePlace tile_in_order(int tile, int down, int across) {
  const int group = tile / (kHeight * across), in_group = tile % (kHeight * across);
  const int height = min(down - group * kHeight, kHeight);
  return {group * kHeight + in_group % height, in_group / height};
}

}  // namespace

// ---- conv_bn_relu_0_conv2d_square_batch_norm_relu --------------------------------------------------------
// features = conv2d(image, filter)
// variance = square(variance_root)
// normed = batch_norm(features, weight, bias, mean, variance)
// active = relu(normed)
// writes active: float32[2, 8, 5, 5]
// A block makes 32x64, each of its warps 16x32; 16 of k are a tile, 3 tiles are in shared memory or on the way. Where an element lies is what its column adds and what k adds, by a table.
extern "C" __global__ void __launch_bounds__(128, 4)
conv_bn_relu_0_conv2d_square_batch_norm_relu(const float* __restrict__ filter, const float* __restrict__ image, const float* __restrict__ mean,
         const float* __restrict__ variance_root, const float* __restrict__ weight,
         const float* __restrict__ bias, float* __restrict__ active) {
  const unsigned stages = shared_address(dynamic_shared);
  const TilePlace tile = tile_in_order<8>((int)blockIdx.x, 1, 1);
  const int row0 = tile.row * 32, column0 = tile.column * 64;
  const int warp = threadIdx.x / 32, warp_lane = threadIdx.x % 32;
  const int warp_row = warp / 2 * 16, warp_column = warp % 2 * 32;
  float sum[4][4] = {};
  KOffsetEntry* const image_steps = (KOffsetEntry*)(dynamic_shared + 18432);
  for (int k = threadIdx.x; k < 32; k += 128) {
    int add = 0;
    unsigned taps = 1u << 31;
    if (k < 27) {
      const int u = k % 3;
      const int rest = k / 3;
      const int l = rest % 3;
      const int rest_2 = rest / 3;
      add = l * 9 + u + rest_2 * 81;
      taps = 1u << (l) | 1u << (u + 3);
    }
    image_steps[k] = {add, taps};
  }
  const int filter_part = threadIdx.x % 16, filter_line = threadIdx.x / 16;
  const float* filter_from;
  {
    const int row = row0 + filter_line;
    filter_from = filter + (row * 27 + filter_part);
  }
  const int image_part = threadIdx.x % 16, image_line = threadIdx.x / 16;
  const float* image_from[8];
  unsigned image_outside[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    image_from[i] = image, image_outside[i] = ~0u;
    const int column = column0 + image_line + i * 8;
    if (column < 50) {
      const int l_2 = column % 5;
      const int rest_3 = column / 5;
      const int j = rest_3 % 5;
      const int rest_4 = rest_3 / 5;
      image_from[i] += rest_4 * 243 + j * 18 + l_2 * 2 - 10;
      image_outside[i] = 1u << 31;
      for (int tap = 0; tap < 3; ++tap) {
        if (!(((j * 2 + tap - 1) < 9) && ((j * 2 + tap - 1) >= 0))) image_outside[i] |= 1u << (0 + tap);
      }
      for (int tap_2 = 0; tap_2 < 3; ++tap_2) {
        if (!(((l_2 * 2 + tap_2 - 1) < 9) && ((l_2 * 2 + tap_2 - 1) >= 0))) image_outside[i] |= 1u << (3 + tap_2);
      }
    }
  }
  __syncthreads();  // the tables are there
  const auto fetch = [&](int step, int into) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool there = row0 + filter_line + i * 8 < 8 && step * 16 + filter_part < 27;
      copy_one(stages + into + 0 + swizzled<4>(filter_line + i * 8, filter_part / 4) + filter_part % 4 * 4, filter_from + step * 16 + i * 216, there);
    }
    const KOffsetEntry here = image_steps[step * 16 + image_part];
#pragma unroll
    for (int i = 0; i < 8; ++i)
      gather_one(stages + into + 2048 + swizzled<4>(image_line + i * 8, image_part / 4) + image_part % 4 * 4, image_from[i], here, image_outside[i]);
  };
  fetch(0, 0);
  commit_copies();
  fetch(1, 6144);
  commit_copies();
  int reading = 0, writing = 12288;
#pragma unroll 1
  for (int step = 0; step < 2; ++step) {
    wait_for_groups<1>();
    __syncthreads();  // this tile is there, and nobody needs the one before
    if (step + 2 < 2) fetch(step + 2, writing);
    commit_copies();
    writing = writing == 12288 ? 0 : writing + 6144;
#pragma unroll 1
    for (int k = 0; k < 16; k += 4) {
      float right[4][4];
      load_lanes<true, 4, 8>(right, dynamic_shared + reading + 2048, warp_column, 0, k, warp_lane % 8);
#pragma unroll
      for (int i = 0; i < 4; i += 4) {
        float left[4][4];
        load_lanes<true, 4, 4>(left, dynamic_shared + reading + 0, warp_row, i * 4, k, warp_lane / 8);
        multiply_lanes<4>(sum + i, left, right);
      }
    }
    reading = reading == 12288 ? 0 : reading + 6144;
  }
  __syncthreads();  // the tiles' memory is free
  float* const staged = (float*)dynamic_shared + warp * 640;
#pragma unroll
  for (int piece = 0; piece < 1; piece += 1) {
    stage_lane_sums<false, true, true>(staged, sum, 0, warp_lane);
    __syncwarp();
    {
      const int place = warp_lane % 32;
      const int column_2 = column0 + warp_column + place;
      if (column_2 < 50) {
        const int l_3 = column_2 % 5;
        const int rest_5 = column_2 / 5;
        const int j_2 = rest_5 % 5;
        const int rest_6 = rest_5 / 5;
        const int first_row = row0 + warp_row + piece * 16;
        const int lines = min((int)16, (int)(8) - first_row);
#pragma unroll 4
        for (int line = warp_lane / 32; line < lines; line += 1) {
          const int row_2 = first_row + line;
          const float variance_root_v = variance_root[row_2];
          const float variance = variance_root_v * variance_root_v;
          const float t = (((staged)[staged_place<32, false>(line, place)]) - mean[row_2]) * (rsqrtf(variance + 0.5f) * weight[row_2]);
          const float normed = t + bias[row_2];
          active[rest_6 * 200 + row_2 * 25 + j_2 * 5 + l_3] = (normed < 0.0f) ? 0.0f : normed;
        }
      }
    }
    __syncwarp();
  }
}

// ---- conv_bn_relu_1_max_pool2d ---------------------------------------------------------------------------
// pooled = max_pool2d(active)
// writes pooled: float32[2, 8, 2, 2]
extern "C" __global__ void __launch_bounds__(256)
conv_bn_relu_1_max_pool2d(const float* __restrict__ active, float* __restrict__ pooled) {
  const int t = blockIdx.x * 256 + threadIdx.x;
  if (t >= 64) return;
  const int m = t % 2;
  const int rest = t / 2;
  const int l = rest % 2;
  const int rest_2 = rest / 2;
  const int j = rest_2 % 8;
  const int rest_3 = rest_2 / 8;
  float pooled_2 = __uint_as_float(0xff800000u);
#pragma unroll
  for (int k = 0; k < 2; ++k) {
#pragma unroll
    for (int k_2 = 0; k_2 < 2; ++k_2) {
      const float active_v = active[rest_3 * 200 + j * 25 + l * 10 + m * 2 + k * 5 + k_2];
      pooled_2 = nan_max(pooled_2, active_v);
    }
  }
  pooled[rest_3 * 32 + j * 4 + l * 2 + m] = pooled_2;
}

#ifndef __CUDACC_RTC__  // ---- host part ------------------------------------------------------------
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdio.h>

typedef struct conv_bn_relu_context conv_bn_relu_context;
typedef struct {
  void* cublaslt;           // unused: this file calls no cuBLASLt
  void* const* nccl_comms;  // unused: this file calls no NCCL
} conv_bn_relu_libraries;
typedef struct {
  const void* image;  // float32[2, 3, 9, 9]
  long long image_shape[4];
  const void* variance_root;  // float32[8]
  long long variance_root_shape[1];
  const void* filter;  // float32[8, 3, 3, 3], constant
  long long filter_shape[4];
  const void* weight;  // float32[8], constant
  long long weight_shape[1];
  const void* bias;  // float32[8], constant
  long long bias_shape[1];
  const void* mean;  // float32[8], constant
  long long mean_shape[1];
  void* pooled;  // float32[2, 8, 2, 2]
} conv_bn_relu_args;

struct conv_bn_relu_context {
  char error[256];
  conv_bn_relu_libraries libraries;
};

namespace {

struct conv_bn_relu_sizes {
  int unused;
};


inline cudaError_t complain(conv_bn_relu_context* ctx, cudaError_t status, const char* text) {
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

inline cudaError_t check_constants(conv_bn_relu_context* ctx, const conv_bn_relu_args* args) {
  if (!args) return complain(ctx, cudaErrorInvalidValue, "no arguments");
  if (args->filter_shape[0] != 8 || args->filter_shape[1] != 3 || args->filter_shape[2] != 3 || args->filter_shape[3] != 3)
    return complain(ctx, cudaErrorInvalidValue, "the extents of filter are not float32[8, 3, 3, 3]");
  if (args->weight_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of weight are not float32[8]");
  if (args->bias_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of bias are not float32[8]");
  if (args->mean_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of mean are not float32[8]");
  return cudaSuccess;
}

inline cudaError_t solve(conv_bn_relu_context* ctx, const conv_bn_relu_args* args, conv_bn_relu_sizes& n) {
  const cudaError_t status = check_constants(ctx, args);
  if (status != cudaSuccess) return status;
  if (args->image_shape[0] != 2 || args->image_shape[1] != 3 || args->image_shape[2] != 9 || args->image_shape[3] != 9)
    return complain(ctx, cudaErrorInvalidValue, "the extents of image are not float32[2, 3, 9, 9]");
  if (args->variance_root_shape[0] != 8)
    return complain(ctx, cudaErrorInvalidValue, "the extents of variance_root are not float32[8]");
  (void)n;
  return cudaSuccess;
}

inline cudaError_t check_pointers(conv_bn_relu_context* ctx, const conv_bn_relu_args* args, const conv_bn_relu_sizes& n) {
  (void)ctx, (void)args, (void)n;
  if (!args->image)
    return complain(ctx, cudaErrorInvalidValue, "image is null");
  if (reinterpret_cast<size_t>(args->image) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "image is not aligned to 16 bytes");
  if (!args->variance_root)
    return complain(ctx, cudaErrorInvalidValue, "variance_root is null");
  if (reinterpret_cast<size_t>(args->variance_root) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "variance_root is not aligned to 16 bytes");
  if (!args->filter)
    return complain(ctx, cudaErrorInvalidValue, "filter is null");
  if (reinterpret_cast<size_t>(args->filter) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "filter is not aligned to 16 bytes");
  if (!args->weight)
    return complain(ctx, cudaErrorInvalidValue, "weight is null");
  if (reinterpret_cast<size_t>(args->weight) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "weight is not aligned to 16 bytes");
  if (!args->bias)
    return complain(ctx, cudaErrorInvalidValue, "bias is null");
  if (reinterpret_cast<size_t>(args->bias) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "bias is not aligned to 16 bytes");
  if (!args->mean)
    return complain(ctx, cudaErrorInvalidValue, "mean is null");
  if (reinterpret_cast<size_t>(args->mean) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "mean is not aligned to 16 bytes");
  if (!args->pooled)
    return complain(ctx, cudaErrorInvalidValue, "pooled is null");
  if (reinterpret_cast<size_t>(args->pooled) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "pooled is not aligned to 16 bytes");
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t conv_bn_relu_create(conv_bn_relu_context** ctx, const conv_bn_relu_libraries* libs) {
  if (!ctx) return cudaErrorInvalidValue;
  *ctx = nullptr;
  conv_bn_relu_context* made = new conv_bn_relu_context();
  if (libs) made->libraries = *libs;
  cudaError_t status = cudaSuccess;
  if (status == cudaSuccess)
    status = cudaFuncSetAttribute(reinterpret_cast<const void*>(conv_bn_relu_0_conv2d_square_batch_norm_relu), cudaFuncAttributeMaxDynamicSharedMemorySize, 18688);
  if (status != cudaSuccess) {
    delete made;
    return status;
  }
  *ctx = made;
  return cudaSuccess;
}

// Bytes; (size_t)-1 where the extents contradict one another or the model. Pointers are not looked at.
size_t conv_bn_relu_workspace_bytes(const conv_bn_relu_args* args) {
  conv_bn_relu_sizes n;
  return solve(nullptr, args, n) == cudaSuccess ? size_t(1792) : size_t(-1);
}

// The same; of the extents only those of constants are looked at. 0: nothing is prepared.
size_t conv_bn_relu_prepared_bytes(const conv_bn_relu_args* args) {
  return check_constants(nullptr, args) == cudaSuccess ? size_t(0) : size_t(-1);
}

cudaError_t conv_bn_relu_prepare(conv_bn_relu_context* ctx, const conv_bn_relu_args* args, void* prepared, cudaStream_t stream) {
  (void)ctx, (void)args, (void)prepared, (void)stream;  // nothing is prepared
  return cudaSuccess;
}

cudaError_t conv_bn_relu_launch(conv_bn_relu_context* ctx, const conv_bn_relu_args* args, const void* prepared, void* workspace,
                     cudaStream_t stream) {
  if (!ctx) return cudaErrorInvalidValue;
  conv_bn_relu_sizes n;
  cudaError_t status = solve(ctx, args, n);
  if (status == cudaSuccess) status = check_pointers(ctx, args, n);
  if (status != cudaSuccess) return status;
  if (!workspace) return complain(ctx, cudaErrorInvalidValue, "no workspace");
  if (reinterpret_cast<size_t>(workspace) % 16 != 0)
    return complain(ctx, cudaErrorInvalidValue, "the workspace is not aligned to 16 bytes");
  char* const work = static_cast<char*>(workspace);
  char* const ready = const_cast<char*>(static_cast<const char*>(prepared));
  (void)work, (void)ready, (void)stream;
  // features, variance, normed, active
  status = launch(reinterpret_cast<const void*>(conv_bn_relu_0_conv2d_square_batch_norm_relu), 1, 1, 1, dim3(128, 1, 1), 18688, stream,
                  static_cast<const void*>(args->filter),
                  static_cast<const void*>(args->image),
                  static_cast<const void*>(args->mean),
                  static_cast<const void*>(args->variance_root),
                  static_cast<const void*>(args->weight),
                  static_cast<const void*>(args->bias),
                  static_cast<void*>(static_cast<void*>(work)));
  if (status != cudaSuccess) return complain(ctx, status, "conv_bn_relu_0_conv2d_square_batch_norm_relu could not be launched");
  // pooled
  status = launch(reinterpret_cast<const void*>(conv_bn_relu_1_max_pool2d), 1, 1, 1, dim3(256, 1, 1), 0, stream,
                  static_cast<const void*>(static_cast<void*>(work)),
                  static_cast<void*>(args->pooled));
  if (status != cudaSuccess) return complain(ctx, status, "conv_bn_relu_1_max_pool2d could not be launched");
  return cudaSuccess;
}

const char* conv_bn_relu_error(const conv_bn_relu_context* ctx) { return ctx ? ctx->error : "no context"; }

void conv_bn_relu_destroy(conv_bn_relu_context* ctx) { delete ctx; }

}  // extern "C"
#endif  // __CUDACC_RTC__
