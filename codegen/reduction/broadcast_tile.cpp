#include "codegen/reduction/broadcast_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {
BroadcastTiles::BroadcastTiles(const Row& row, const std::vector<RowLoop>& loops, ExprEmitter& emitter)
    : row_(row), emitter_(emitter) {
  const ExprPool& pool = row.form.kernel.pool;
  if (row.layout.blocks_sharing_row() > 1 && row.iterations == 0) return;
  std::optional<std::uint32_t> vectors;  // axis of the first loop, by which positions are expressed
  for (const RowLoop& loop : loops) {
    if (loop.width == 1 || loop.axes.size() != 2) continue;
    const std::uint32_t vector_axis = loop.axes[0], lane_axis = loop.axes[1];
    const IndexExpr count = row.split.start ? floor_div(*row.split.length, loop.width) : pool.extent(vector_axis);
    if (!vectors) vectors = vector_axis, vectors_ = simplify(count, pool.bounds()), width_ = loop.width;
    if (simplify(count, pool.bounds()) != vectors_ || loop.width != width_) continue;
    for (const ExprId id : outside_reductions(row.form, loop.roots)) {
      const ExprNode& n = pool[id];
      if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr || bits(n.dtype) < 8) continue;
      const IndexExpr position = emitter.position(id);
      const int words = bits(n.dtype) * loop.width / 32;
      const bool fits = bits(n.dtype) * loop.width % 32 == 0 && (words == 1 || words == 2 || words == 4 || words == 8);
      if (!fits || (words == 8 && bits(n.dtype) < 32)) continue;
      if (coefficient_of(position, {Variable::Kind::kAxis, lane_axis}) != 1) continue;
      if (is_vector_position(position, lane_axis, loop.width, n.dtype, pool.bounds())) continue;
      const bool of_rows = std::ranges::all_of(emitter.axes_of(id), [&](std::uint32_t a) {
        return a == vector_axis || a == lane_axis || std::ranges::find(row.form.rows, a) != row.form.rows.end();
      });
      if (by_values(position) || !of_rows) continue;
      const IndexExpr here =
          simplify(with_axis(with_axis(position, lane_axis, 0), vector_axis, IndexExpr::axis(*vectors)), pool.bounds());
      if (coefficient_of(here, {Variable::Kind::kAxis, *vectors}) != loop.width) continue;
      add_load(id, {.tensor = n.source, .vector_axis = *vectors, .position = here, .dtype = n.dtype, .words = words});
    }
  }
}

void BroadcastTiles::add_load(ExprId load, const Tile& tile) {
  const auto known = std::ranges::find_if(all_, [&](const Tile& other) {
    return other.tensor == tile.tensor && other.position == tile.position && other.words == tile.words;
  });
  const auto number = static_cast<std::size_t>(known - all_.begin());
  if (known == all_.end()) {
    const Bounds& bounds = row_.form.kernel.pool.bounds();
    const IndexExpr more = simplify(bytes_ + bytes_of(tile.words) * row_.layout.rows, bounds);
    lacks_room_ = lacks_room_ || range_of(more, bounds).max > row_.most_bytes;
    if (range_of(more, bounds).max > row_.most_bytes) return;
    bytes_ = more;
    all_.push_back(tile);
  }
  tile_of_[load] = number;
}

// Shared memory for one row. It includes one more vector, because a part of it may be needed. Blocks that share the row
// store each iteration's vectors separately.
IndexExpr BroadcastTiles::bytes_of(int words) const {
  if (row_.layout.blocks_sharing_row() > 1) return IndexExpr(row_.iterations * 4 * words_of_vectors(words));
  return simplify(ceil_div(vectors_ * words + words + 1, 4) * 16, row_.form.kernel.pool.bounds());
}

void BroadcastTiles::begin(Place place) {
  if (all_.empty()) return;
  if (!row_.split.start) place.first = "0", place.last = emitter_.index_text().tight(vectors_);
  KernelWriter& writer = emitter_.writer();
  writer.use("dynamic_shared");
  writer.use("unaligned_tile");
  first_vector_ = place.first, lane_ = place.thread;
  IndexExpr at = row_.first_byte;
  for (Tile& tile : all_) {
    const IndexExpr bytes = bytes_of(tile.words);
    std::string text = at.is(0) ? "dynamic_shared" : "dynamic_shared + " + emitter_.index_text().tight(at);
    if (row_.layout.rows > 1)
      text += fmt::format(" + threadIdx.x / {} * {}", row_.layout.parts, emitter_.index_text().tight(bytes));
    tile.name = writer.unique(writer.preferred_name(tile.tensor) + "_tile");
    writer.line("unsigned* const {} = (unsigned*)({});", tile.name, text);
    fill(tile, place);
    at = simplify(at + bytes * row_.layout.rows, row_.form.kernel.pool.bounds());
  }
}

void BroadcastTiles::fill(Tile& tile, const Place& place) {
  KernelWriter& writer = emitter_.writer();
  if (bits(tile.dtype) < 32) tile.bits = writer.unique("bits");
  const RowLayout& layout = row_.layout;
  std::string bounds, from = place.first;
  if (layout.blocks_sharing_row() > 1) {
    from = fmt::format("{}{} * {}", from == "0" ? "" : from + " + ", place.block, layout.threads);
    const std::string block = writer.declared("const " + writer.index_type(), "of_block", from);
    from = block;
    bounds = fmt::format("0, {}, {}, {}, {}", tile.words * layout.threads, row_.iterations,
                         words_of_vectors(tile.words), tile.words * layout.parts);
  } else {
    const Range count = range_of(vectors_, row_.form.kernel.pool.bounds());
    // An unaligned row may have one vector less.
    const std::int64_t least = std::max<std::int64_t>(0, count.min - (row_.split.start ? 1 : 0));
    constexpr std::int64_t kMostCopies = 64;  // per thread, each a statement in the text
    const bool loops = row_.iterations == 0 || tile.words * count.max > kMostCopies * layout.parts;
    bounds = fmt::format("{}, {}", tile.words * least, loops ? 0 : tile.words * count.max);
  }
  const ExprEmitter::Mark mark = emitter_.mark();
  emitter_.bind(tile.vector_axis, from);
  const std::string at = emitter_.index_text()(tile.position);
  emitter_.rewind(mark);
  const std::string result = tile.bits.empty() ? "" : fmt::format("const int {} = ", tile.bits);
  writer.line("{}stage_unaligned<TileWords<{}>, {}, {}, {}>({}, {}, {}, (int)({} - {}), {});", result, bounds,
              layout.blocks_sharing_row() > 1 ? layout.threads : layout.parts, bits(tile.dtype), tile.words, tile.name,
              writer.input(tile.tensor), at, place.last, from,
              layout.blocks_sharing_row() > 1 ? "threadIdx.x" : place.thread);
}

void BroadcastTiles::wait_for(const std::vector<ExprId>& roots) {
  if (waited_ || std::ranges::none_of(outside_reductions(row_.form, roots), [&](ExprId id) { return has(id); })) return;
  waited_ = true;
  KernelWriter& writer = emitter_.writer();
  writer.line("wait_for_tiles();");
  writer.line(row_.layout.reduction_group == ReductionGroup::kWarp ? "__syncwarp();" : "__syncthreads();");
}

std::string BroadcastTiles::words_of(ExprId load, const std::string& iteration, const std::string& vector) {
  KernelWriter& writer = emitter_.writer();
  const Tile& tile = all_[tile_of_.at(load)];
  std::string at = fmt::format("{} * (int)({} - {})", tile.words, vector, first_vector_);
  if (row_.layout.blocks_sharing_row() > 1)
    at = fmt::format("{} * {} + {} * threadIdx.x", iteration, words_of_vectors(tile.words), tile.words);
  else if (!iteration.empty())
    at = fmt::format("{} * {} + {} * {}", iteration, tile.words * row_.layout.parts, tile.words, lane_);
  const std::string variable = writer.unique(writer.preferred_name(tile.tensor) + "_w");
  writer.line("const Words<{1}> {0} = load_staged_vector<{2}, {1}>({3} + {4}, {5});", variable, tile.words,
              bits(tile.dtype), tile.name, at, tile.bits.empty() ? "0" : tile.bits);
  return variable;
}

}  // namespace fusec
