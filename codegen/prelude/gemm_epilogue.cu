// Staging of GEMM accumulators in shared memory, from which lanes read neighbouring columns for the epilogue.

//@ part load_staged
// Loads four elements from shared memory, always as one access of 16 bytes.
__device__ __forceinline__ void load_staged(float (&four)[4], unsigned at) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four[0]), "=f"(four[1]), "=f"(four[2]), "=f"(four[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ void load_staged(int (&four)[4], unsigned at) {
  asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3])
               : "r"(at)
               : "memory");
}

//@ part staged_sums : neighbours shared_address
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

//@ part staged_lane : staged_sums kept load_staged
// Reads eight staged columns from the shared address of the first.
template <class Sum, int kWidth>
__device__ __forceinline__ EightSums<Sum> eight_staged_at(unsigned at) {
  Sum a[4], b[4];
  load_staged(a, at);
  load_staged(b, at + staged_place<kWidth>(0, 4) * 4);
  return {a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
}

//@ part staged_pairs : staged_sums load_staged
// Index of eight staged pairs of interleaved columns (gate and up). Rows 4 to 7 of each eight are shifted by four
// elements to avoid bank conflicts.
template <int kWidth>
__device__ __forceinline__ constexpr int place_of_pairs(int row, int pair) {
  return staged_place<2 * kWidth>(row, 2 * pair) + row / 4 % 2 * 4;
}
// The row of group number `item` of eight pairs, in an order that has no bank conflicts.
template <int kWidth>
__device__ __forceinline__ int row_of_pairs(int item) {
  if constexpr (kWidth == 16) return item / 16 * 8 + item % 8 / 2 * 2 + item / 8 % 2;
  return item % 8 / 4 * 4 + item / 8;
}
template <class Sum>
struct EightPairs {
  EightSums<Sum> even, odd;
};
// Reads eight staged pairs from shared address `at`.
template <class Sum, int kWidth>
__device__ __forceinline__ EightPairs<Sum> eight_pairs(unsigned at) {
  EightPairs<Sum> pairs;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    Sum four[4];
    load_staged(four, at + staged_place<2 * kWidth>(0, 4 * i) * 4);
    pairs.even.v[2 * i] = four[0], pairs.odd.v[2 * i] = four[1];
    pairs.even.v[2 * i + 1] = four[2], pairs.odd.v[2 * i + 1] = four[3];
  }
  return pairs;
}

//@ part whole_rows : staged_sums
// Stores 16 rows of a warp's mma accumulators in a buffer of the block's whole rows of kWidth columns.
template <int kWidth, bool kHalves, int kEights>
__device__ __forceinline__ void store_whole_rows(float* rows, const float (&sum)[kEights][4], int lane) {
  static_assert(kWidth > 16);
  store_pairs_of_eights<4 * staged_place<kWidth, kHalves>(0, 8), 4 * staged_place<kWidth, kHalves>(8, 0)>(
      shared_address(rows + staged_place<kWidth, kHalves>(lane / 4, lane % 4 * 2)), sum);
}

//@ part staged_lane_sums : staged_sums
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

//@ part whole_lane_rows
// Stores 16 rows (number `piece`) of the accumulators of a warp of 4 by 8 lanes in a row-major buffer. kRowsApart: a
// lane's rows are 4 apart, else neighbours. kColumnsApart: its columns are 8 apart, else fours of neighbours, 32 apart.
template <bool kRowsApart, bool kColumnsApart, int kStride, int kRows, int kColumns>
__device__ __forceinline__ void store_whole_lane_rows(float* rows, const float (&sum)[kRows][kColumns], int piece,
                                                      int lane) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int row = kRowsApart ? lane / 8 + 4 * i : lane / 8 * 4 + i;
      const int column = kColumnsApart ? lane % 8 + 8 * j : lane % 8 * 4 + j / 4 * 32 + j % 4;
      rows[row * kStride + column] = sum[4 * piece + i][j];
    }
}
