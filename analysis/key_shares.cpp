#include "analysis/key_shares.h"

#include <algorithm>
#include <vector>

#include "analysis/attention_tiles.h"
#include "ir/type.h"

namespace fusec {

int shares_of_keys(const Attention& form, const Graph& graph, const AttentionTiles& tiles, const Target& target) {
  const ExprPool& pool = form.kernel.pool;
  const auto points = [&](const std::vector<std::uint32_t>& axes) {
    IndexExpr count = 1;
    for (const std::uint32_t a : axes) count *= pool.extent(a);
    return std::max<std::int64_t>(1, value_at_hint(count, graph.symbols));
  };
  const std::int64_t keys = points(form.keys), rows = points(form.rows), batch = points(form.batch);
  const std::int64_t blocks = batch * ((rows + tiles.rows - 1) / tiles.rows);
  const std::int64_t most = std::min(2 * target.multiprocessors / blocks, keys / (2 * tiles.keys));
  if (most < 2) return 1;
  // What is stored beside the result takes a second walk over the keys, where scores do not wait in its place.
  const double of_key =
      (form.beside.empty() || form.waiting ? 1 : 2) * (tiles.depth + tiles.columns) * tiles.element_bytes;
  const double bytes = static_cast<double>(batch * keys) * of_key;  // blocks of other rows find them in the cache
  // As the cost model has it: blocks have so much on the way in one latency.
  const auto seconds = [&](std::int64_t shares) {
    const double on_the_way = static_cast<double>(blocks * shares) * bytes_on_the_way(tiles);
    const double left =
        shares == 1 ? 0 : 2 * sizeof(float) * static_cast<double>(batch * rows * shares * (tiles.columns + 2));
    const double rate = std::min(target.bandwidth, on_the_way / target.latency_seconds);
    return (bytes + left) / rate + (shares == 1 ? 0 : target.launch_seconds);
  };
  std::int64_t best = 1;
  for (std::int64_t wanted = 2; wanted <= most; ++wanted) {
    // Shares are whole tiles, as many for each: no more of them than that leaves work for.
    const std::int64_t all_tiles = (keys + tiles.keys - 1) / tiles.keys, of_share = (all_tiles + wanted - 1) / wanted;
    const std::int64_t shares = (all_tiles + of_share - 1) / of_share;
    if (seconds(shares) < seconds(best)) best = shares;
  }
  return static_cast<int>(best);
}

}  // namespace fusec
