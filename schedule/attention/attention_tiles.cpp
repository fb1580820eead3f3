#include "schedule/attention/attention_tiles.h"

#include <algorithm>
#include <bit>
#include <span>

#include "ir/type.h"

namespace fusec {
namespace {

int rounded_up(std::int64_t n, int to) {
  return static_cast<int>((n + to - 1) / to * to);
}

// Returns a line stride that is an odd number of 16-byte units, so that eight lines read at once use different banks.
int padded(int elements, int unit) {
  return elements + (elements / unit % 2 == 0 ? unit : 2 * unit);
}

std::int64_t points(const Attention& form, const std::vector<std::uint32_t>& axes) {
  std::int64_t count = 1;
  for (const std::uint32_t a : axes)
    count *= std::max<std::int64_t>(1, value_at_hint(form.kernel.pool.extent(a), form.kernel.pool.bounds().symbols));
  return count;
}

// Returns a power of two, which threads copy evenly: at most a tile, and at most the largest number of keys.
int most_keys(const Attention& form) {
  constexpr std::int64_t kTile = 64;
  IndexExpr keys = 1;
  for (const std::uint32_t a : form.keys) keys *= form.kernel.pool.extent(a);
  return static_cast<int>(std::bit_ceil(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(range_of(keys, form.kernel.pool.bounds()).max, 16, kTile))));
}

// Tiles of 128 rows read keys and values half as often as tiles of 64, but need enough rows to fill the device.
bool fills_large_tiles(const Attention& form, const Target& target) {
  const std::int64_t rows = points(form, form.rows);
  return rows >= 128 && points(form, form.batch) * ((rows + 127) / 128) >= target.multiprocessors;
}

// Heads whose keys and values fit in half of the L2 cache; at least so few that two tiles of each are computed at a
// time and share what one of them loads.
int heads_at_once(const Attention& form, const AttentionTiles& tiles, const Target& target) {
  const std::int64_t bytes =
      std::int64_t{tiles.element_bytes} * points(form, form.keys) * (tiles.head_dim + tiles.columns);
  return std::max(static_cast<int>(target.l2_bytes / 2 / bytes), target.multiprocessors / 2);
}

bool is_copied(const Attention& form, ExprId operand) {
  const ExprNode& n = form.kernel.pool[operand];
  return n.op == ExprOp::kLoad && bits(n.dtype) == 16;
}

// Tiles for the few rows of decoding. The warps of a block have the same 16 rows (all query heads of a key head) and
// different keys. Keys and values that are copied, as they are or before they are dequantized, go through a pipeline.
AttentionTiles for_few_rows(AttentionTiles t, const Attention& form, const Target& target) {
  constexpr int kRows = 16, kWarpKeys = 16, kStages = 4, kMostWarps = 4;
  constexpr int kReserved = 1024;  // bytes of shared memory that a block takes besides its own
  const int most = std::min(kMostWarps, most_keys(form) / kWarpKeys);
  const auto two_fit = [&] { return 2 * (t.bytes() + kReserved) <= target.shared_bytes_per_block + kReserved; };
  t.rows = kRows;
  t.quantized_stages = quantized_load(form, form.key) && quantized_load(form, form.value);
  const bool copied = t.quantized_stages || (is_copied(form, form.key) && is_copied(form, form.value));
  for (t.stages = copied ? kStages : 1;; --t.stages) {
    for (t.key_warps = most; t.key_warps > 0; t.key_warps /= 2) {
      t.keys = kWarpKeys * t.key_warps;
      t.threads = kWarpLanes * t.key_warps;
      if (two_fit() || (t.stages == 1 && t.key_warps == 1)) return t;
    }
  }
}

AttentionTiles on_tensor_cores(const Attention& form, const Target& target) {
  AttentionTiles t;
  t.tensor_cores = true;
  t.head_dim = rounded_up(form.query_head_size(), 16);
  t.columns = rounded_up(form.value_head_size(), 16);
  // Accumulators and queries of large heads leave few registers for scores.
  t.keys = std::min(t.head_dim + t.columns > 320 ? 32 : 64, most_keys(form));
  t.query_stride = t.key_stride = padded(t.head_dim, 8);
  t.value_stride = padded(t.columns, 8);
  t.heads_at_once = heads_at_once(form, t, target);
  if (points(form, form.rows) <= 16 && form.extra_outputs.empty()) return for_few_rows(t, form, target);
  if (!fills_large_tiles(form, target)) return t;
  AttentionTiles large = t;
  large.rows = 128;
  // A warp with two fragments of 16 rows loads each fragment of keys and values once for both. This needs registers, so
  // the score must be the bare product without key-dependent steps. If weights are stored, storing dominates, and large
  // heads would only double the code.
  const int head = std::max(t.head_dim, t.columns);
  const bool two_m16_fragments = head <= (form.extra_outputs.empty() ? 128 : 64) && form.score == form.contraction &&
                                 form.key_weight_steps.empty();
  large.m16_fragments = two_m16_fragments ? 2 : 1;
  large.thread_rows = 2 * large.m16_fragments;
  large.threads = two_m16_fragments ? 128 : 256;
  large.queries_in_shared = two_m16_fragments && t.head_dim + 2 * t.columns > 256;
  return large.bytes() <= target.shared_bytes_per_block ? large : t;
}

// Returns the rows per thread, for 16 threads along the rows: as many as leave a block for every multiprocessor, but
// not more than there are.
int rows_of_thread(const Attention& form, const Target& target) {
  const std::int64_t rows = points(form, form.rows), batches = points(form, form.batch);
  int mine = 4;
  while (mine > 1 && (rows <= 8 * mine || batches * ((rows + 16 * mine - 1) / (16 * mine)) < target.multiprocessors))
    mine /= 2;
  return mine;
}

AttentionTiles in_lanes(const Attention& form, const Target& target) {
  AttentionTiles t;
  t.element_bytes = form.kernel.pool[form.contraction].type == ScalarType::kFloat64 ? 8 : 4;
  t.head_dim = rounded_up(form.query_head_size(), 4);
  t.vector_columns = form.value_head_size() > 16;
  t.columns = rounded_up(form.value_head_size(), t.vector_columns ? 32 : 8);
  t.query_stride = t.key_stride = padded(t.head_dim, 16 / t.element_bytes);
  t.value_stride = t.columns;
  // The largest tile that fits static shared memory, with a thread's accumulators in registers.
  const int most_rows = rows_of_thread(form, target);
  t.heads_at_once = heads_at_once(form, t, target);
  for (const auto& [thread_rows, keys] : {std::pair{4, 32}, {2, 32}, {4, 16}, {2, 16}, {1, 32}, {1, 16}, {1, 8}}) {
    if (thread_rows > most_rows) continue;
    t.thread_rows = thread_rows;
    t.rows = 16 * thread_rows;
    t.keys = keys;
    t.weight_stride = keys + 8;
    while (t.weight_stride % 32 != 8 && t.weight_stride % 32 != 24) t.weight_stride += 8;
    if (thread_rows * t.thread_columns() * t.element_bytes <= 256 && t.bytes() <= AttentionTiles::kStaticBytes) break;
  }
  return t;
}

}  // namespace

int AttentionTiles::elements() const {
  // The result reuses the space of the queries.
  if (tensor_cores)
    return std::max(query_at() + rows * std::max(query_stride, value_stride),
                    (stages_at() + stages * stage_bytes()) / element_bytes);
  return weight_at() + rows * weight_stride;
}

int AttentionTiles::query_bytes() const {
  return std::max(8192 * head_segments(), 64 * 2 * value_stride);
}

namespace {

int most_stages(AttentionTiles tiles, const Target& target) {
  for (tiles.stages = 4; tiles.stages > 1; --tiles.stages)
    if (tiles.warpgroup_bytes() <= target.shared_bytes_per_block) break;
  return tiles.stages;
}

}  // namespace

std::optional<AttentionTiles> warpgroup_tiles(const Attention& form, const Target& target) {
  constexpr int kLeastRows = 128;
  if (target.compute_capability != 90 || !target.architecture_specific || !form.tensor_dtype ||
      !form.extra_outputs.empty() || form.rows.size() != 1 || form.keys.size() != 1 ||
      points(form, form.rows) < kLeastRows)
    return std::nullopt;
  AttentionTiles t;
  t.tensor_cores = t.warpgroups = true;
  t.threads = 384;
  t.rows = 128;
  t.head_dim = rounded_up(form.query_head_size(), 16);
  t.columns = rounded_up(form.value_head_size(), 64);
  t.value_stride = padded(t.columns, 8);
  // A thread's registers hold accumulators, scores of the next tile and weights of this one.
  t.most_blocks = target.multiprocessors;
  t.heads_at_once = heads_at_once(form, t, target);
  t.in_turns = t.columns <= 128 && t.head_dim <= 128;
  t.keys = t.in_turns ? 128 : 64;
  t.stages = most_stages(t, target);
  return t.stages > 1 ? std::optional(t) : std::nullopt;
}

AttentionTiles with_fewer_keys(AttentionTiles tiles, const Target& target) {
  tiles.keys = std::min(tiles.keys, 64);
  tiles.stages = most_stages(tiles, target);
  return tiles;
}

AttentionTiles combine_tiles(const AttentionTiles& tiles) {
  AttentionTiles t;
  t.keys = tiles.keys;
  t.threads = tiles.threads;
  t.element_bytes = tiles.tensor_cores ? 4 : tiles.element_bytes;
  t.vector_columns = true;
  t.columns = rounded_up(tiles.columns, 32);
  while (t.lanes_per_row < 32 && t.columns % (8 * t.lanes_per_row) == 0) t.lanes_per_row *= 2;
  t.thread_rows = 1;
  t.rows = t.threads / t.lanes_per_row;
  return t;
}

std::optional<ExprId> quantized_load(const Attention& form, ExprId operand) {
  const ExprPool& pool = form.kernel.pool;
  std::optional<ExprId> found;
  for (const ExprId id : reachable(pool, std::span(&operand, 1))) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad || bits(n.dtype) != 8) continue;
    if (found || n.args[0] != kNoExpr) return std::nullopt;
    found = id;
  }
  return found;
}

double bytes_in_flight(const AttentionTiles& tiles) {
  const double bytes = tiles.keys * (tiles.quantized_stages ? 1 : tiles.element_bytes);
  return bytes * (tiles.stages > 1 ? (tiles.stages - 1) * (tiles.head_dim + tiles.columns) : tiles.head_dim);
}

AttentionTiles attention_tiles(const Attention& form, const Target& target) {
  return form.tensor_dtype ? on_tensor_cores(form, target) : in_lanes(form, target);
}

}  // namespace fusec
