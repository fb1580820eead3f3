// Stretches of the steps of streamed tiles: every step is one block's, in order, and parts of a tile are numbered.
#include "schedule/gemm/stream_k.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace fusec {
namespace {

std::int64_t first_of(const StreamK& s, std::int64_t block) {
  return block * s.stream_k_tiles * s.steps / s.blocks;
}

TEST_CASE("tile streams: a step is the block's whose stretch it is in") {
  for (const auto& [stream_k_tiles, steps, blocks] :
       {std::tuple{1, 64, 8}, {2, 33, 8}, {52, 128, 108}, {100, 7, 132}, {5, 3, 4}, {7, 129, 8}}) {
    const StreamK s{.whole = 3, .stream_k_tiles = stream_k_tiles, .blocks = blocks, .steps = steps};
    std::int64_t most = 0;
    for (std::int64_t tile = 0; tile < stream_k_tiles; ++tile) {
      std::int64_t parts = 0;
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t begin = std::max(first_of(s, block), tile * steps);
        const std::int64_t end = std::min(first_of(s, block + 1), (tile + 1) * steps);
        for (std::int64_t step = begin; step < end; ++step) CHECK(s.block_at(step) == block);
        parts += begin < end;
      }
      most = std::max(most, parts);
    }
    CHECK(s.max_partials_per_tile() == most);
  }
}

}  // namespace
}  // namespace fusec
