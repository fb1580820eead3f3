#include "analysis/tile_streams.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/depth_shares.h"
#include "ir/error.h"

namespace fusec {
namespace {

std::optional<std::int64_t> known(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  IndexExpr count = 1;
  for (const std::uint32_t a : axes) count *= pool.extent(a);
  return simplify(count, pool.bounds()).as_constant();
}

}  // namespace

std::int64_t TileStreams::most_parts() const {
  std::int64_t most = 1;
  for (std::int64_t tile = 0; tile < streamed; ++tile)
    most = std::max(most, block_at((tile + 1) * steps - 1) - block_at(tile * steps) + 1);
  return most;
}

TileStreams streams_of(const ExprPool& pool, const Product& product, const GemmTiles& tiles) {
  const auto rows = known(pool, product.rows), columns = known(pool, product.columns);
  const auto batch = known(pool, product.batch), depth = known(pool, product.loops[0].depth);
  if (!rows || !columns || !batch || !depth) throw InternalError("tiles of unknown number are streamed");
  const auto parts = [](std::int64_t extent, std::int64_t of) { return (extent + of - 1) / of; };
  return {.whole = parts(*rows, tiles.rows) * parts(*columns, tiles.columns) * *batch - tiles.streamed,
          .streamed = tiles.streamed,
          .blocks = tiles.streams,
          .steps = parts(*depth, tiles.depth)};
}

bool may_stream(const ExprPool& pool, const Product& product, const GemmForm& form, const Target& target) {
  if (!target.streams_tiles || !form.tensor_cores() || form.groups || form.pairs || form.loops.size() != 1)
    return false;
  if (!product.row_values.empty()) return false;
  const std::vector<std::uint32_t>* const all[] = {&product.batch, &product.rows, &product.columns,
                                                   &product.loops[0].depth};
  return std::ranges::all_of(all, [&](const auto* axes) { return known(pool, *axes).has_value(); });
}

GemmTiles with_streams(const GemmForm& form, double tiles, double steps, const Target& target) {
  constexpr double kLeastSteps = 4;       // of a block
  constexpr double kMostSteps = 1 << 30;  // in 32 bits
  constexpr double kMostOfWave = 0.875;   // a last wave of more is full enough
  constexpr double kMostWaves = 24;       // of more the last one does not count
  GemmTiles streamed = form.tiles;
  const double over = std::fmod(tiles, target.multiprocessors);
  const bool together = steps_together(form.loops[0].block, streamed.depth) > 1;
  if (together || over == 0 || over > kMostOfWave * target.multiprocessors || tiles * steps > kMostSteps ||
      over * steps * target.multiprocessors > kMostSteps || tiles > kMostWaves * target.multiprocessors ||
      over * steps < kLeastSteps * target.multiprocessors)
    return streamed;
  streamed.streamed = static_cast<int>(over);
  streamed.streams = target.multiprocessors;
  return streamed;
}

double cycles_of_streams(double sums, const GemmTiles& tiles, const Target& target) {
  constexpr double kLatency = 466;
  const double parts = tiles.streams + tiles.streamed;  // a stretch may end one tile and begin another
  const double moved = 2 * 4 * sums * tiles.rows * tiles.columns * parts / (target.bandwidth / kCyclesASecond);
  return target.launch_seconds * kCyclesASecond + moved + 2 * kLatency;
}

}  // namespace fusec
