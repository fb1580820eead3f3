// GEMM: what a warp computes of a pair of tiles in shared memory, with and without tensor cores.

//@ part multiply_fragments
// sum += a * b for 16 * kRows by 16 * kColumns elements of a warp.
template <auto kMma, class Sum, int kRows, int kColumns>
__device__ __forceinline__ void multiply_fragments(Sum (&sum)[kRows][2 * kColumns][4], const unsigned (&a)[kRows][4],
                                                   const unsigned (&b)[kColumns][4]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kColumns; ++j) kMma(sum[i][j], a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
}

//@ part fragment_sums
// sum += the four int8 values in a word.
__device__ __forceinline__ void add_codes(int& sum, unsigned four) {
  asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(four), "r"(0x01010101));
}
// Sums int8 fragments along K, for zero points: (x - o) w = x w - o sum w. sums[i]: the lane's part of row (or column)
// 8 i + lane / 4.
template <bool kLeft, int kPieces>
__device__ __forceinline__ void add_fragments(int (&sums)[2 * kPieces], const unsigned (&pieces)[kPieces][4]) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) add_codes(sums[2 * i + (kLeft ? k % 2 : k / 2)], pieces[i][k]);
}
__device__ __forceinline__ int sum_of_four_lanes(int part) {
  part += __shfl_xor_sync(~0u, part, 1);
  return part + __shfl_xor_sync(~0u, part, 2);
}
// sum -= offset * (sum of the other operand along K, from add_fragments). kOfColumns: the other operand is the right
// one.
template <bool kOfColumns, int kRows, int kColumns, int kSums>
__device__ __forceinline__ void subtract_zero_point(int (&sum)[kRows][kColumns][4], const int (&others)[kSums], int offset,
                                            int lane) {
#pragma unroll
  for (int o = 0; o < kSums; ++o) {
    const int times = offset * sum_of_four_lanes(others[o]);  // of line lane / 4
    const int two[2] = {__shfl_sync(~0u, times, lane % 4 * 8), __shfl_sync(~0u, times, lane % 4 * 8 + 4)};
#pragma unroll
    for (int i = 0; i < (kOfColumns ? kRows : kColumns); ++i)
#pragma unroll
      for (int k = 0; k < (kOfColumns ? 4 : 2); ++k) {
        if constexpr (kOfColumns)
          sum[i][o][k] -= two[k % 2];
        else
          sum[o / 2][i][o % 2 * 2 + k] -= times;
      }
  }
}

//@ part add_parts
// sum += part * of_rows[row] * of_columns[column]; part = 0. Called after each block of K that has scales of its own.
template <bool kRowsScaled, bool kColumnsScaled, class Part, int kRows, int kColumns>
__device__ __forceinline__ void add_parts(float (&sum)[kRows][kColumns][4], Part (&part)[kRows][kColumns][4],
                                          const float* of_rows, const float* of_columns, int lane) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float scale = 1.0f;
        if constexpr (kRowsScaled) scale = of_rows[16 * i + k / 2 * 8 + lane / 4];
        if constexpr (kColumnsScaled) scale *= of_columns[8 * j + lane % 4 * 2 + k % 2];
        sum[i][j][k] += (float)part[i][j][k] * scale;
        part[i][j][k] = 0;
      }
}

//@ part lane_fragments : swizzle_advance
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
