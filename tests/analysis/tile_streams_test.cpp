// Stretches of the steps of streamed tiles: every step is one block's, in order, and parts of a tile are numbered.
#include "analysis/tile_streams.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace fusec {
namespace {

std::int64_t first_of(const TileStreams& s, std::int64_t block) {
  return block * s.streamed * s.steps / s.blocks;
}

TEST_CASE("tile streams: a step is the block's whose stretch it is in") {
  for (const auto& [streamed, steps, blocks] :
       {std::tuple{1, 64, 8}, {2, 33, 8}, {52, 128, 108}, {100, 7, 132}, {5, 3, 4}, {7, 129, 8}}) {
    const TileStreams s{.whole = 3, .streamed = streamed, .blocks = blocks, .steps = steps};
    std::int64_t most = 0;
    for (std::int64_t tile = 0; tile < streamed; ++tile) {
      std::int64_t parts = 0;
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t begin = std::max(first_of(s, block), tile * steps);
        const std::int64_t end = std::min(first_of(s, block + 1), (tile + 1) * steps);
        for (std::int64_t step = begin; step < end; ++step) CHECK(s.block_at(step) == block);
        parts += begin < end;
      }
      most = std::max(most, parts);
    }
    CHECK(s.most_parts() == most);
  }
}

}  // namespace
}  // namespace fusec
