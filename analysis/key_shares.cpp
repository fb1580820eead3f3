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
  const std::int64_t keys = points(form.keys);
  const std::int64_t blocks = points(form.batch) * ((points(form.rows) + tiles.rows - 1) / tiles.rows);
  const std::int64_t most = std::min(2 * target.multiprocessors / blocks, keys / (2 * tiles.keys));
  if (most < 2) return 1;
  // Shares are whole tiles, as many for each: no more of them than that leaves work for.
  const std::int64_t all_tiles = (keys + tiles.keys - 1) / tiles.keys, of_share = (all_tiles + most - 1) / most;
  const std::int64_t shares = (all_tiles + of_share - 1) / of_share;
  // A block alone on a multiprocessor gets a few times its fair share of the bandwidth.
  // What is stored beside the result takes a second walk over the keys, where scores do not wait in its place.
  const double of_key =
      (form.beside.empty() || form.waiting ? 1 : 2) * (tiles.depth + tiles.columns) * tiles.element_bytes;
  const double bytes = static_cast<double>(blocks * keys) * of_key;
  const auto seconds = [&](std::int64_t of_keys) {
    const double of_blocks = 4 * target.bandwidth / target.multiprocessors * static_cast<double>(blocks * of_keys);
    return bytes / std::min(target.bandwidth, of_blocks);
  };
  return seconds(shares) + target.launch_seconds < seconds(1) ? static_cast<int>(shares) : 1;
}

}  // namespace fusec
