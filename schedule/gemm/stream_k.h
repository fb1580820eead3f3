// Stream-K: if the tiles of a GEMM slightly exceed whole waves of blocks, the last wave would leave most
// multiprocessors idle. Instead as many blocks as multiprocessors share the last tiles evenly along K: all steps of
// these tiles form one stream, and each block has a contiguous range of it.
//
//   9 tiles of 64 steps, 8 multiprocessors     8 blocks with a tile each, 8 with 8 steps each of the ninth
//
// For each tile in its range a block stores partial sums. A second kernel adds them in the order of K and runs the
// epilogue. Sizes are constants in the kernels, so they must be known.
#pragma once

#include <cstdint>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/target/target.h"

namespace fusec {

struct StreamK {
  std::int64_t whole = 0;           // tiles with a block each
  std::int64_t stream_k_tiles = 0;  // the tiles after them
  std::int64_t blocks = 0;          // blocks that share the stream-K tiles
  std::int64_t steps = 0;           // steps along K per tile

  // The block that has this step of the stream.
  std::int64_t block_at(std::int64_t step) const { return ((step + 1) * blocks - 1) / (stream_k_tiles * steps); }
  // The most blocks that have steps of one tile.
  std::int64_t max_partials_per_tile() const;
};

// `tiles` must have stream-K tiles (GemmTiles::stream_k_tiles).
StreamK stream_k_of(const ExprPool& pool, const Contraction& contraction, const GemmTiles& tiles);

// True for known sizes, one loop over K, and tensor cores.
bool can_stream_k(const ExprPool& pool, const Contraction& contraction, const GemmForm& form, const Target& target);

// The form's tiles with stream-K for the last of `tiles` tiles of `steps` steps. Unchanged if there are none, or too
// little to share.
GemmTiles with_stream_k(const GemmForm& form, double tiles, double steps, const Target& target);

// The cycles for partial sums and the second kernel. `accumulators`: per output element.
double stream_k_cycles(double accumulators, const GemmTiles& tiles, const Target& target);

}  // namespace fusec
