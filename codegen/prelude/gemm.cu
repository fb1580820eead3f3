// GEMM with a pipeline of tiles in shared memory.

//@ part tile_order
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

//@ part sorted_ends
// Sorts the end rows of a grouped GEMM's `count` groups, by all kThreads threads of the block.
template <int kThreads>
__device__ __forceinline__ void sort_ends(const int* given, int* sorted, int count) {
  __syncthreads();
#pragma unroll 1
  for (int e = threadIdx.x; e < count; e += kThreads) {
    int before = 0;
#pragma unroll 1
    for (int other = 0; other < count; ++other)
      before += given[other] < given[e] || (given[other] == given[e] && other < e);
    sorted[before] = given[e];
  }
  __syncthreads();
}

//@ part row_groups : sorted_ends
// A tile of a grouped GEMM: its group, its first row, and the group's rows [begin, end). Rows of the tile outside of
// these belong to other groups.
struct RowsOfTile {
  int group, first, begin, end;
};
// Finds tile number `tile`; each group has tiles of its own, which begin at multiples of kAligned. Rows after the last
// group form group `count`. For a number past the last tile, first == end.
template <int kRows, int kAligned>
__device__ __forceinline__ RowsOfTile rows_of_tile(const int* ends, int count, int rows, int tile) {
  int begin = 0;
  for (int group = 0; group <= count; ++group) {
    const int end = group < count ? ends[group] : rows, first = begin / kAligned * kAligned;
    const int tiles = end > begin ? (end - first + kRows - 1) / kRows : 0;
    if (tile < tiles) return {group, first + tile * kRows, begin, end};
    tile -= tiles, begin = end;
  }
  return {count, rows, rows, rows};
}

//@ part group_tiles : sorted_ends
// A persistent block's group in a grouped GEMM: its rows [first, end), its rows of tiles, and the tiles of all groups
// before.
struct GroupTiles {
  int group = -1, first = 0, end = 0, down = 0, before = 0;
};
// Advances to the group of tile number `tile`, which must not decrease; returns false past the last tile. Tiles are
// numbered group by group, `across` per row of tiles. Rows after the last group form group `count`.
template <int kRows>
__device__ __forceinline__ bool find_group(GroupTiles& at, const int* ends, int count, int rows, int across, int tile) {
#pragma unroll 1
  while (tile >= at.before + at.down * across) {
    if (at.group == count) return false;
    at.before += at.down * across;
    at.first = at.end;
    at.end = ++at.group < count ? ends[at.group] : rows;
    at.down = (at.end - at.first + kRows - 1) / kRows;
  }
  return true;
}

//@ part copy_pipeline
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

//@ part swizzle
// Byte offset of a unit of 16 bytes in an XOR-swizzled tile with kUnits units per line: ldmatrix reads the same unit of
// eight lines without bank conflicts.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled(int line, int unit) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return 16 * (line * kUnits + (unit ^ (line / kLinesABank % kTurns)));
}

//@ part swizzled_further : swizzle
// Byte offset of the swizzled unit that is `lines` lines and `units` units after the one at offset `at`. They must have
// no bits in common with the line and the unit at `at`.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled_further(unsigned at, int lines, int units) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return (at ^ 16 * (units % kTurns ^ lines / kLinesABank % kTurns)) + 16 * (lines * kUnits + units / kTurns * kTurns);
}

//@ part tile_fragments : load_matrices swizzle
// Byte offset of the row that the lane passes to ldmatrix for the 16x16 fragment at (across, depth) of a tile.
// `across`: M or N; `depth`: K in units of two bytes; kAlongDepth: the tile is K-major. The 8x8 matrices come in this
// order of (across, K): left operand (0, 0) (8, 0) (0, 8) (8, 8), right operand (0, 0) (0, 8) (8, 0) (8, 8).
template <bool kLeft, bool kAlongDepth, int kUnits>
__device__ __forceinline__ unsigned fragment_place(int across, int depth, int lane) {
  const int first = lane / 8 % 2 * 8, second = lane / 16 * 8;
  const int lane_across = across + (kLeft ? first : second), lane_depth = depth + (kLeft ? second : first);
  return kAlongDepth ? swizzled<kUnits>(lane_across + lane % 8, lane_depth / 8)
                     : swizzled<kUnits>(lane_depth + lane % 8, lane_across / 8);
}
// Loads kPieces 16x16 mma fragments that are 16 apart in M or N.
template <bool kLeft, bool kAlongDepth, int kUnits, int kPieces>
__device__ __forceinline__ void load_fragments(unsigned (&pieces)[kPieces][4], unsigned tile, int across, int depth,
                                               int lane) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    if constexpr (kAlongDepth)
      load_matrices(pieces[i], tile + i * 256 * kUnits + fragment_place<kLeft, true, kUnits>(across, depth, lane));
    else
      load_matrices_transposed(pieces[i], tile + depth * 16 * kUnits +
                                              fragment_place<kLeft, false, kUnits>(across + 16 * i, 0, lane));
  }
}

//@ part placed_fragments : tile_fragments load_pieces
// ldmatrix addresses of a warp's fragments, computed before the loop over K: one per slice of K (32 bytes) for K-major
// tiles, one per fragment for MN-major ones. All others are at constant distances from these.
template <bool kLeft, bool kAlongDepth, int kUnits, int kPieces, int kSlices>
struct FragmentPlaces {
  unsigned at[kAlongDepth ? kSlices : kPieces];

  __device__ __forceinline__ FragmentPlaces(unsigned tile, int across, int lane) {
#pragma unroll
    for (int i = 0; i < (kAlongDepth ? kSlices : kPieces); ++i) {
      at[i] = tile + fragment_place<kLeft, kAlongDepth, kUnits>(across + (kAlongDepth ? 0 : 16 * i),
                                                                kAlongDepth ? 16 * i : 0, lane);
      asm("" : "+r"(at[i]));  // keeps it in a register; the compiler would recompute it
    }
  }
  template <int kSlice = 0>
  __device__ __forceinline__ void load(unsigned (&pieces)[kPieces][4], unsigned stage, int slice) const {
    if constexpr (kAlongDepth) {
      load_pieces<256 * kUnits>(pieces, at[slice] + stage);
    } else if (slice == kSlice) {
#pragma unroll
      for (int i = 0; i < kPieces; ++i) load_matrices_transposed<256 * kUnits * kSlice>(pieces[i], at[i] + stage);
    } else if constexpr (kSlice + 1 < kSlices) {
      load<kSlice + 1>(pieces, stage, slice);
    }
  }
};

//@ part tf32_fragments : tile_fragments
// Byte offset of a unit of 16 bytes in an MN-major float32 tile: pairs of units are XOR-swizzled, so that a warp reads
// eight neighbouring words of four lines without bank conflicts.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled_in_pairs(int line, int unit) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return 16 * (line * kUnits + (unit ^ (line % 4 / kLinesABank * 2 % kTurns)));
}
// Shared addresses of a warp's tf32 fragments (16 of M or N by 8 of K) in an MN-major tile: the halves of the first
// two; others are at constant distances.
template <bool kLeft, int kUnits, int kPieces, int kSlices>
struct WordPlaces {
  unsigned at[4];

  __device__ __forceinline__ WordPlaces(unsigned tile, int across, int lane) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = across + 8 * i + lane / 4;
      at[i] = tile + swizzled_in_pairs<kUnits>(lane % 4, column / 4) + column % 4 * 4;
      asm("" : "+r"(at[i]));  // keeps it in a register; the compiler would recompute it
    }
  }
  __device__ __forceinline__ void load(unsigned (&pieces)[kPieces][4], unsigned stage, int slice) const {
#pragma unroll
    for (int i = 0; i < kPieces; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int later = 0; later < 2; ++later) {
          const unsigned from = at[i % 2 * 2 + half] + stage + (i / 2 * 128 + (slice * 8 + later * 4) * 16 * kUnits);
          unsigned& word = pieces[i][kLeft ? half + 2 * later : 2 * half + later];
          asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from));
        }
  }
};
// Rounds float32 to tf32, to nearest.
template <int kPieces>
__device__ __forceinline__ void round_to_tf32(unsigned (&pieces)[kPieces][4]) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(pieces[i][k]) : "f"(__uint_as_float(pieces[i][k])));
}

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
__device__ __forceinline__ void take_offset(int (&sum)[kRows][kColumns][4], const int (&others)[kSums], int offset,
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

//@ part lane_fragments : swizzled_further
// Loads a lane's operand without tensor cores: fours[i][k] = tile[row_i][depth + k]; rows are columns of the right
// operand. The warp's rows, from `warp` on, are divided into kParts, of which the lane has number `part`:
//   K-major (kAlongDepth)  row_i = warp + first + part + i * kParts
//   MN-major               row_i = warp + first + 4 * (part + i / 4 * kParts) + i % 4
template <bool kAlongDepth, int kUnits, int kParts, int kEach>
__device__ __forceinline__ void load_lanes(float (&fours)[kEach][4], const void* tile, int warp, int first, int depth,
                                           int part) {
  if constexpr (kAlongDepth) {
    const unsigned lane = swizzled_further<kUnits>(swizzled<kUnits>(warp + part, 0), 0, depth / 4);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const unsigned at = swizzled_further<kUnits>(lane, first + i * kParts, 0);
      *(float4*)fours[i] = *(const float4*)((const char*)tile + at);
    }
  } else {
    const unsigned lane = swizzled_further<kUnits>(swizzled<kUnits>(0, warp / 4 + part), depth, 0);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int i = 0; i < kEach; i += 4) {
        const unsigned at = swizzled_further<kUnits>(lane, k, first / 4 + i / 4 * kParts);
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

//@ part staged_lane : staged_sums kept load_staged
// Reads eight staged columns from the shared address of the first.
template <class Sum, int kWidth>
__device__ __forceinline__ EightSums<Sum> eight_staged_at(unsigned at) {
  Sum a[4], b[4];
  load_staged(a, at);
  load_staged(b, at + staged_place<kWidth>(0, 4) * 4);
  return {a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
}

//@ part depth_shares : neighbours
// Stores 16 rows of a warp's partial sums of split-K, as share[column / 8][lane][4].
template <class Sum, int kEights>
__device__ __forceinline__ void leave_share(Sum* share, const Sum (&sum)[kEights][4], int lane) {
#pragma unroll
  for (int j = 0; j < kEights; ++j)
    *(Neighbours<Sum, 4>*)(share + j * 128 + lane * 4) = {sum[j][0], sum[j][1], sum[j][2], sum[j][3]};
}
// Adds the partial sums of all splits in order; they are `apart` elements apart.
template <class Sum, int kEights>
__device__ __forceinline__ void add_shares(Sum (&sum)[kEights][4], const Sum* first, int shares, long long apart,
                                           int lane) {
  const Sum* share = first + lane * 4;
#pragma unroll 4
  for (int s = 0; s < shares; ++s, share += apart)
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
      const auto four = *(const Neighbours<Sum, 4>*)(share + j * 128);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[j][i] += four.v[i];
    }
}
