#include "schedule/attention/split_kv.h"

#include <algorithm>
#include <vector>

#include "ir/type.h"
#include "schedule/attention/attention_tiles.h"

namespace fusec {

namespace {

std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

IndexExpr keys_of(const Attention& form) {
  IndexExpr count = 1;
  for (const std::uint32_t a : form.keys) count *= form.kernel.pool.extent(a);
  return count;
}

std::int64_t expected_keys(const Attention& form) {
  return std::max<std::int64_t>(1, value_at_hint(keys_of(form), form.kernel.pool.bounds().symbols));
}

// Returns the number of splits for so many keys: at least two blocks a multiprocessor, and as many as keep all of them
// equally busy; 1 if that is predicted to take longer.
int splits_of(std::int64_t keys, const Attention& form, const AttentionTiles& tiles, const Target& target) {
  const ExprPool& pool = form.kernel.pool;
  const auto points = [&](const std::vector<std::uint32_t>& axes) {
    IndexExpr count = 1;
    for (const std::uint32_t a : axes) count *= pool.extent(a);
    return std::max<std::int64_t>(1, value_at_hint(count, pool.bounds().symbols));
  };
  const std::int64_t rows = points(form.rows), batch = points(form.batch);
  const std::int64_t blocks = batch * ((rows + tiles.rows - 1) / tiles.rows);
  const std::int64_t of_each = ceil_of(ceil_of(2 * target.multiprocessors, blocks) * blocks, target.multiprocessors);
  const std::int64_t wanted = std::min(of_each * target.multiprocessors / blocks, keys / (2 * tiles.keys));
  if (wanted < 2) return 1;
  // Extra outputs without a score buffer take a second loop over the keys.
  const double of_key = (form.extra_outputs.empty() || form.score_buffer ? 1 : 2) * (tiles.head_dim + tiles.columns) *
                        tiles.element_bytes;
  const double bytes = static_cast<double>(batch * keys) * of_key;  // blocks of other rows hit the cache
  // As in the cost model, bandwidth is limited by the bytes in flight per latency. Fewer than two blocks a
  // multiprocessor also leave it idle while they multiply.
  const auto seconds = [&](std::int64_t splits) {
    const double all_blocks = static_cast<double>(blocks * splits),
                 in_flight_bytes = all_blocks * bytes_in_flight(tiles);
    const double busy = std::min(1.0, all_blocks / (2 * target.multiprocessors));
    const double left =
        splits == 1 ? 0 : 2 * sizeof(float) * static_cast<double>(batch * rows * splits * (tiles.columns + 2));
    const double rate = std::min(busy * target.bandwidth, in_flight_bytes / target.latency_seconds);
    return (bytes + left) / rate + (splits == 1 ? 0 : (launches_of_splits(form) - 1) * target.launch_seconds);
  };
  // Splits are whole tiles, equally many each, so not every number of splits is possible.
  const std::int64_t all_tiles = ceil_of(keys, tiles.keys), splits = ceil_of(all_tiles, ceil_of(all_tiles, wanted));
  return seconds(splits) < seconds(1) ? static_cast<int>(splits) : 1;
}

}  // namespace

KeySplits split_keys(const Attention& form, const AttentionTiles& tiles, const Target& target) {
  const std::int64_t keys = expected_keys(form);
  KeySplits splits{.most = splits_of(keys, form, tiles, target)};
  const std::int64_t most = range_of(keys_of(form), form.kernel.pool.bounds()).max;
  if (splits.most == 1 || most == keys) return splits;
  splits.most = std::max(splits.most, splits_of(std::min(most, kKeyHeadroom * keys), form, tiles, target));
  splits.min_tiles = 2;
  return splits;
}

int expected_splits(const Attention& form, const AttentionTiles& tiles, const Target& target) {
  const KeySplits splits = split_keys(form, tiles, target);
  if (splits.most == 1) return 1;
  const std::int64_t all_tiles = ceil_of(expected_keys(form), tiles.keys);
  return static_cast<int>(
      ceil_of(all_tiles, std::max<std::int64_t>(ceil_of(all_tiles, splits.most), splits.min_tiles)));
}

}  // namespace fusec
