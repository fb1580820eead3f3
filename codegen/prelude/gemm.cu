// Matrix products through a pipeline of tiles in shared memory.

//@ part tile_order
// Blocks that run at a time make tiles that lie near one another, so that they share lines of both factors in the L2
// cache: tiles come in groups of kHeight rows of them, each group column by column.
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
// Rows in groups, one behind the other: their ends in order, whatever order they have in memory.
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
// The tile-th tile of the groups', each of which has tiles of its own; rows behind the last group are one more. Tiles
// begin at a multiple of kAligned: the first of a group may have rows ahead of `begin`, which are another group's.
struct RowsOfTile {
  int group, first, begin, end;
};
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
// A group's tiles stand together: all of the first group's, then the next one's, as many down as its rows need. Rows
// behind the last group are one more. `before`: how many tiles stand ahead of the group's.
struct GroupTiles {
  int group = -1, first = 0, end = 0, down = 0, before = 0;
};
// Goes on to the group whose tile it is; false where there are fewer tiles.
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
// 16 bytes from global to shared memory while the thread goes on; zeros where nothing is there. A group of copies is
// what was issued before commit_copies; all groups but the newest kNewest are there after wait_for_groups.
__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(__cvta_generic_to_global(from)));
}
__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0));
}
// kCount lines of a tile, each kTo bytes behind the one before; from as many places, or from one and kFrom bytes on.
// `there`: of each 16 bytes, how many are there; zeros stand for the rest.
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
// Where 16 bytes of a line lie in a tile whose lines are kUnits times as long: units change places from line to line, so
// that eight lines' units of one number, which ldmatrix reads at a time, are in different banks.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled(int line, int unit) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return 16 * (line * kUnits + (unit ^ (line / kLinesABank % kTurns)));
}

//@ part swizzled_further : swizzle
// The same so many lines and units further, for one operation where they are known: they share no bits with the line
// and the unit at which `at` is.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled_further(unsigned at, int lines, int units) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return (at ^ 16 * (units % kTurns ^ lines / kLinesABank % kTurns)) + 16 * (lines * kUnits + units / kTurns * kTurns);
}

//@ part tile_fragments : load_matrices swizzle
// 16x16 pieces of a factor's tile as operands of mma. kAlongDepth: the tile's lines run along the depth, else across it.
// A left factor's eight matrix rows come in the order (0, 0), (8, 0), (0, 8), (8, 8) across and along the depth, a right
// one's in (0, 0), (0, 8), (8, 0), (8, 8). Which of them is the lane's:
template <bool kLeft, bool kAlongDepth, int kUnits>
__device__ __forceinline__ unsigned fragment_place(int across, int depth, int lane) {
  const int first = lane / 8 % 2 * 8, second = lane / 16 * 8;
  const int lane_across = across + (kLeft ? first : second), lane_depth = depth + (kLeft ? second : first);
  return kAlongDepth ? swizzled<kUnits>(lane_across + lane % 8, lane_depth / 8)
                     : swizzled<kUnits>(lane_depth + lane % 8, lane_across / 8);
}
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
// The same in a loop over tiles, from addresses that are known before it: pieces along the depth lie one behind the other,
// and so do slices of lines that run across, with the swizzle of the first.
template <bool kLeft, bool kAlongDepth, int kUnits, int kPieces, int kSlices>
struct FragmentPlaces {
  unsigned at[kAlongDepth ? kSlices : kPieces];

  __device__ __forceinline__ FragmentPlaces(unsigned tile, int across, int lane) {
#pragma unroll
    for (int i = 0; i < (kAlongDepth ? kSlices : kPieces); ++i) {
      at[i] = tile + fragment_place<kLeft, kAlongDepth, kUnits>(across + (kAlongDepth ? 0 : 16 * i),
                                                                kAlongDepth ? 16 * i : 0, lane);
      asm("" : "+r"(at[i]));  // or else it is computed anew in the loop
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
// Tiles of float32 whose lines run across: units change places so that four lines' neighbouring two are in different
// banks, since lanes read words of four lines.
template <int kUnits>
__device__ __forceinline__ unsigned swizzled_in_pairs(int line, int unit) {
  constexpr int kLinesABank = kUnits < 8 ? 8 / kUnits : 1, kTurns = kUnits < 8 ? kUnits : 8;
  return 16 * (line * kUnits + (unit ^ (line % 4 / kLinesABank * 2 % kTurns)));
}
// Pieces of 16 across and 8 along the depth: the halves of two of them lie anywhere, the others behind these.
template <bool kLeft, int kUnits, int kPieces, int kSlices>
struct WordPlaces {
  unsigned at[4];

  __device__ __forceinline__ WordPlaces(unsigned tile, int across, int lane) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = across + 8 * i + lane / 4;
      at[i] = tile + swizzled_in_pairs<kUnits>(lane % 4, column / 4) + column % 4 * 4;
      asm("" : "+r"(at[i]));  // or else it is computed anew in the loop
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
// Eleven bits of mantissa, to the nearest.
template <int kPieces>
__device__ __forceinline__ void round_to_tf32(unsigned (&pieces)[kPieces][4]) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(pieces[i][k]) : "f"(__uint_as_float(pieces[i][k])));
}

//@ part multiply_fragments
template <auto kMma, class Sum, int kRows, int kColumns>
__device__ __forceinline__ void multiply_fragments(Sum (&sum)[kRows][2 * kColumns][4], const unsigned (&a)[kRows][4],
                                                   const unsigned (&b)[kColumns][4]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < 2 * kColumns; ++j) kMma(sum[i][j], a[i], {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]});
}

//@ part fragment_sums
// What a lane has of the sums along the depth of int8 fragments: of each eight of a right factor's columns, or of a left
// one's rows.
__device__ __forceinline__ void add_codes(int& sum, unsigned four) {
  asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(four), "r"(0x01010101));
}
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
// Takes an offset times the other factor's sums from the sums. kOfColumns: those are of the columns.
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
// What a warp has summed of a block of the depth, times its rows' scales and its columns', to the sums.
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
// What a lane multiplies of a float32 factor's tile: four along the depth of kEach across, the first of the warp's. kParts
// lanes of a warp have others: where the tile's lines run along the depth, each every kParts-th across, else four
// neighbours each.
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
// The same from a warp of 4 by 8 lanes: the piece-th 16 of its rows. Apart: a lane's rows, or columns, are apart.
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
// The piece-th 16 of a warp's rows to where all rows of the block stand, a row as it is; lanes as above.
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
// A warp's sums on their way from fragments to lanes that have neighbours of one row: 16 rows of kWidth columns in
// shared memory. kHalves: for lanes that read eight columns at a time, the first four of them in a row's first half.
template <int kWidth, bool kHalves = true>
__device__ __forceinline__ constexpr int staged_place(int row, int column) {
  if constexpr (!kHalves && kWidth == 16) return row * 16 + (column ^ (row / 2 % 2 * 8));  // two rows are read at a time
  if constexpr (!kHalves) return row * (kWidth + 8) + column;
  return row * (kWidth + 8) + column % 8 / 4 * (kWidth / 2 + 4) + column / 8 * 4 + column % 4;
}
// A lane's four sums of an eight of columns, kAt bytes from `at`: two of its row, two of the row eight on. Statements of
// PTX, since what NVRTC takes goes with the number of statements that it optimizes.
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
template <bool kHalves, class Sum, int kEights>
__device__ __forceinline__ void stage_sums(Sum* staged, const Sum (&sum)[kEights][4], int lane) {
  constexpr int kWidth = 8 * kEights, kLower = 4 * staged_place<kWidth, kHalves>(8, 0);
  const unsigned first = shared_address(staged + staged_place<kWidth, kHalves>(lane / 4, lane % 4 * 2));
  if constexpr (!kHalves && kWidth == 16) {  // in some lines the second eight is before the first
    const unsigned second = shared_address(staged + staged_place<kWidth, kHalves>(lane / 4, 8 + lane % 4 * 2));
    store_pairs<0, kLower>(first, sum[0]);
    store_pairs<0, kLower>(second, sum[1]);
  } else {
    store_pairs_of_eights<4 * staged_place<kWidth, kHalves>(0, 8), kLower>(first, sum);
  }
}
// The row of the item-th eight: eight lanes read rows whose first halves are in different banks.
template <int kWidth>
__device__ __forceinline__ int staged_row(int item) {
  if constexpr (kWidth == 32) return item / 16 * 4 + item % 8 / 4 * 2 + item / 8 % 2;
  return item / (kWidth / 8);
}
template <class Sum>
struct EightSums {
  Sum v[8];
};
template <int kWidth, class Sum>
__device__ __forceinline__ EightSums<Sum> eight_staged(const Sum* staged, int row, int column) {
  const auto a = *(const Neighbours<Sum, 4>*)(staged + staged_place<kWidth>(row, column));
  const auto b = *(const Neighbours<Sum, 4>*)(staged + staged_place<kWidth>(row, column + 4));
  return {a.v[0], a.v[1], a.v[2], a.v[3], b.v[0], b.v[1], b.v[2], b.v[3]};
}

//@ part staged_pairs : staged_sums load_staged
// Sums of which two neighbouring columns are a pair, staged as 2 * kWidth columns: where eight pairs begin. Of every
// eight lines the last four are four columns further, so that lines that are read at a time are in different banks.
template <int kWidth>
__device__ __forceinline__ constexpr int place_of_pairs(int row, int pair) {
  return staged_place<2 * kWidth>(row, 2 * pair) + row / 4 % 2 * 4;
}
// The row of the item-th eight pairs: those of eight lanes are different ones in both fours of eight lines.
template <int kWidth>
__device__ __forceinline__ int row_of_pairs(int item) {
  if constexpr (kWidth == 16) return item / 16 * 8 + item % 8 / 2 * 2 + item / 8 % 2;
  return item % 8 / 4 * 4 + item / 8;
}
template <class Sum>
struct EightPairs {
  EightSums<Sum> even, odd;
};
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
// 16 of a warp's rows from fragments to where all rows of the block stand, kWidth columns of each.
template <int kWidth, bool kHalves, int kEights>
__device__ __forceinline__ void store_whole_rows(float* rows, const float (&sum)[kEights][4], int lane) {
  static_assert(kWidth > 16);
  store_pairs_of_eights<4 * staged_place<kWidth, kHalves>(0, 8), 4 * staged_place<kWidth, kHalves>(8, 0)>(
      shared_address(rows + staged_place<kWidth, kHalves>(lane / 4, lane % 4 * 2)), sum);
}

//@ part load_staged
// Four elements of shared memory, none of them apart from the others.
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
// An eight of staged sums, by the address of its first.
template <class Sum, int kWidth>
__device__ __forceinline__ EightSums<Sum> eight_staged_at(unsigned at) {
  Sum a[4], b[4];
  load_staged(a, at);
  load_staged(b, at + staged_place<kWidth>(0, 4) * 4);
  return {a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
}

//@ part depth_shares : neighbours
// 16 rows of a warp's sums over a share of the depth, each 4 of a lane beside those of the other lanes, and the sums of
// all shares, `apart` from one another.
template <class Sum, int kEights>
__device__ __forceinline__ void leave_share(Sum* share, const Sum (&sum)[kEights][4], int lane) {
#pragma unroll
  for (int j = 0; j < kEights; ++j)
    *(Neighbours<Sum, 4>*)(share + j * 128 + lane * 4) = {sum[j][0], sum[j][1], sum[j][2], sum[j][3]};
}
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
