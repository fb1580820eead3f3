// Where the tiles of a product are some more than whole waves of blocks, the last ones would leave most multiprocessors
// idle. Their depth is shared out instead, evenly, among as many blocks as there are multiprocessors (stream-K): their
// steps along the depth, tile behind tile, are one stream of which each block has a stretch.
//
//   9 tiles of 64 steps, 8 multiprocessors     8 blocks with a tile each, 8 with 8 steps each of the ninth
//
// A block leaves its sums of each tile of its stretch in memory, and a second kernel adds them up in the order of the
// depth, ahead of what stands behind the product. Sizes are known: all of this is numbers in the kernels.
#pragma once

#include <cstdint>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/target/target.h"

namespace fusec {

struct StreamK {
  std::int64_t whole = 0;           // tiles that have a block each
  std::int64_t stream_k_tiles = 0;  // the others, behind them
  std::int64_t blocks = 0;          // that share these
  std::int64_t steps = 0;           // of a tile along the depth

  // The block, among those that share, which has this step of the streamed tiles.
  std::int64_t block_at(std::int64_t step) const { return ((step + 1) * blocks - 1) / (stream_k_tiles * steps); }
  // Blocks that have steps of one tile, at most.
  std::int64_t max_partials_per_tile() const;
};

// The streams of tiles that have some (GemmTiles::streamed).
StreamK stream_k_of(const ExprPool& pool, const Contraction& product, const GemmTiles& tiles);

// Known sizes, one sum over the depth at a time, on tensor cores.
bool can_stream_k(const ExprPool& pool, const Contraction& product, const GemmForm& form, const Target& target);

// The form's tiles with the last of so many streamed, each of so many steps; as they are where that is none, or too
// little to share.
GemmTiles with_stream_k(const GemmForm& form, double tiles, double steps, const Target& target);

// Cycles for what the blocks leave, of so many sums for each element, and the kernel more.
double stream_k_cycles(double accumulators, const GemmTiles& tiles, const Target& target);

}  // namespace fusec
