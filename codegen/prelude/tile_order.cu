// Which output tile a block computes: in an order for the L2 cache, and in grouped GEMMs.

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

//@ part tile_of_turn
// The tile that a persistent block makes in its turn number `turn`. Every second turn counts from the last block on: if
// tiles get shorter, the block with the longest tile of a turn has the shortest of the next.
__device__ __forceinline__ int tile_of_turn(int turn) {
  return turn * gridDim.x + (turn % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
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
