#include "schedule/gemm/stream_k.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/error.h"
#include "schedule/gemm/split_k.h"

namespace fusec {
namespace {

std::optional<std::int64_t> known(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  IndexExpr count = 1;
  for (const std::uint32_t a : axes) count *= pool.extent(a);
  return simplify(count, pool.bounds()).as_constant();
}

}  // namespace

std::int64_t StreamK::max_partials_per_tile() const {
  std::int64_t most = 1;
  for (std::int64_t tile = 0; tile < stream_k_tiles; ++tile)
    most = std::max(most, block_at((tile + 1) * steps - 1) - block_at(tile * steps) + 1);
  return most;
}

StreamK stream_k_of(const ExprPool& pool, const Contraction& contraction, const GemmTiles& tiles) {
  const auto rows = known(pool, contraction.rows), columns = known(pool, contraction.columns);
  const auto batch = known(pool, contraction.batch), k = known(pool, contraction.loops[0].k);
  if (!rows || !columns || !batch || !k) throw InternalError("tiles of unknown number are streamed");
  const auto parts = [](std::int64_t extent, std::int64_t of) { return (extent + of - 1) / of; };
  return {.whole = parts(*rows, tiles.rows) * parts(*columns, tiles.columns) * *batch - tiles.stream_k_tiles,
          .stream_k_tiles = tiles.stream_k_tiles,
          .blocks = tiles.stream_k_blocks,
          .steps = parts(*k, tiles.k)};
}

bool can_stream_k(const ExprPool& pool, const Contraction& contraction, const GemmForm& form, const Target& target) {
  if (!target.allows_stream_k || !form.tensor_cores() || form.groups || form.pairs || form.loops.size() != 1)
    return false;
  if (!contraction.row_values.empty()) return false;
  const std::vector<std::uint32_t>* const all[] = {&contraction.batch, &contraction.rows, &contraction.columns,
                                                   &contraction.loops[0].k};
  return std::ranges::all_of(all, [&](const auto* axes) { return known(pool, *axes).has_value(); });
}

GemmTiles with_stream_k(const GemmForm& form, double tiles, double steps, const Target& target) {
  constexpr double kLeastSteps = 4;       // per block
  constexpr double kMostSteps = 1 << 30;  // fits 32 bits
  constexpr double kMostOfWave = 0.875;   // a fuller last wave needs no stream-K
  constexpr double kMostWaves = 24;       // with more waves, the last one does not matter
  GemmTiles stream_k_tiles = form.tiles;
  const double over = std::fmod(tiles, target.multiprocessors);
  const bool together = steps_per_scale_block(form.loops[0].block, stream_k_tiles.k) > 1;
  if (together || over == 0 || over > kMostOfWave * target.multiprocessors || tiles * steps > kMostSteps ||
      over * steps * target.multiprocessors > kMostSteps || tiles > kMostWaves * target.multiprocessors ||
      over * steps < kLeastSteps * target.multiprocessors)
    return stream_k_tiles;
  stream_k_tiles.stream_k_tiles = static_cast<int>(over);
  stream_k_tiles.stream_k_blocks = target.multiprocessors;
  return stream_k_tiles;
}

double stream_k_cycles(double accumulators, const GemmTiles& tiles, const Target& target) {
  constexpr double kLatency = 466;
  // A block's range may end one tile and begin another.
  const double parts = tiles.stream_k_blocks + tiles.stream_k_tiles;
  const double moved =
      2 * 4 * accumulators * tiles.rows * tiles.columns * parts / (target.bandwidth / kCyclesPerSecond);
  return target.launch_seconds * kCyclesPerSecond + moved + 2 * kLatency;
}

}  // namespace fusec
