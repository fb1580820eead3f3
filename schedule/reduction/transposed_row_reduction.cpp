#include "schedule/reduction/transposed_row_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/reduction/lane_sectors.h"
#include "schedule/reduction/row_values.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kAccessBytes = 16, kLeast = 16;   // bytes
constexpr int kMostRowsOfBlock = 128;           // per block
constexpr std::int64_t kMinTransposedRow = 16;  // elements of a row; a single thread can take shorter rows
constexpr std::int64_t kFewestNeighbours = 4;   // rows with contiguous elements
constexpr int kMostWidth = 8;                   // elements per lane at a time
constexpr int kOfLane = 32;                     // elements per lane, if there are enough lanes
constexpr int kFewLanes = 8;                    // minimum lanes per row if lanes take single elements
constexpr int kAsWords = 128;                   // elements of a row; shorter unaligned rows are stored as words
constexpr std::size_t kMaxCandidates = 4;

// The largest power of two of elements for an access that is aligned at all of these positions.
int elements_of_access(const std::vector<IndexExpr>& multiples, int bytes, const Bounds& bounds) {
  int elements = kAccessBytes / bytes;
  const auto fits = [&](const IndexExpr& e) { return proves_multiple_of(e, elements, bounds); };
  while (elements > 1 && !std::ranges::all_of(multiples, fits)) elements /= 2;
  return elements;
}

// The range of neighbouring rows under a mask.
struct Rows {
  std::int64_t from = 0;
  std::optional<std::int64_t> until;
};

// Reads the form and classifies its accesses: strided rows, contiguous rows, vectors shared by rows.
class TransposedRowReductionReader {
 public:
  TransposedRowReductionReader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  std::optional<TransposedRowReduction> read() {
    if (!find_length() || !find_neighbours()) return std::nullopt;
    find_leading_rows();
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (!see(id)) return std::nullopt;
    if (!see_outputs() || !across_ || !along_rows_) return std::nullopt;
    plan_.form = form_;
    return plan_;
  }
  // Elements per lane for the narrowest contiguous tensor that is stored.
  int narrowest_along() const { return narrowest_along_; }

 private:
  using Orientation = TransposedRowReduction::Orientation;

  bool find_length() {
    std::optional<RowAxes> along = axes_of_one_length(form_);
    if (!along || form_.rows.empty() || !form_.segments.empty()) return false;
    if (along->length < kMinTransposedRow || along->length > kMostRowsOfBlock * 1024) return false;
    along_ = std::move(along->axes);
    plan_.length = static_cast<int>(along->length);
    return true;
  }

  // Finds the axis of rows that is contiguous in the strided operands.
  bool find_neighbours() {
    for (const Access& access : accesses_of(graph_, pool_, roots_of(form_.kernel), form_.kernel.outputs))
      for (const std::uint32_t a : form_.rows) {
        const IndexExpr& at = access.at;
        const bool runs = std::ranges::any_of(along_, [&](std::uint32_t k) {
          return mentions(at, Variable{Variable::Kind::kAxis, k});
        });
        if (!runs || !step_is(at, a, 1)) continue;
        plan_.inner = a;
        std::ranges::copy_if(form_.rows, std::back_inserter(plan_.outer), [&](std::uint32_t b) { return b != a; });
        return value_at_hint(pool_.extent(a), pool_.bounds().symbols) >= kFewestNeighbours;
      }
    return false;
  }

  bool step_is(const IndexExpr& at, std::uint32_t axis, std::int64_t by) const {
    const auto step = difference_along(at, axis, pool_.bounds());
    return step && step->is(by);
  }

  // The rows to which a mask restricts a load; nothing for any other kind of mask.
  std::optional<Rows> rows_of(ExprId guard) const {
    if (guard == kNoExpr) return Rows{};
    if (pool_[guard].op == ExprOp::kAnd) {
      const auto a = rows_of(pool_[guard].args[0]), b = rows_of(pool_[guard].args[1]);
      if (!a || !b) return std::nullopt;
      return Rows{.from = std::max(a->from, b->from),
                  .until = a->until && b->until ? std::min(a->until, b->until)
                           : a->until           ? a->until
                                                : b->until};
    }
    const auto compared = index_comparison(pool_, guard);
    if (!compared) return std::nullopt;
    const auto before = simplify(compared->difference - IndexExpr::axis(plan_.inner), pool_.bounds()).as_constant();
    if (!before) return std::nullopt;
    const std::int64_t bound = compared->bound - *before;
    return compared->at_least ? Rows{.from = std::max<std::int64_t>(0, bound)} : Rows{.until = bound + 1};
  }

  // If a strided operand covers only some rows, blocks start at sector boundaries relative to its first row.
  void find_leading_rows() {
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel))) {
      const ExprNode& n = pool_[id];
      if (n.op != ExprOp::kLoad || n.args[0] == kNoExpr || bits(n.dtype) < 8) continue;
      const auto rows = rows_of(n.args[0]);
      if (!rows || !step_is(position_of(graph_, pool_, id), plan_.inner, 1)) continue;
      const std::int64_t sector = kSectorBytes * 8 / bits(n.dtype);
      plan_.leading_rows = static_cast<int>((sector - rows->from % sector) % sector);
      return;
    }
  }

  // The tile of an access with element k of a row at this position; nothing if no tile fits.
  std::optional<TransposedRowReduction::Tile> tile_at(const IndexExpr& at, std::uint32_t k, DType dtype,
                                                      const Rows& rows = {}) const {
    const auto of_row = difference_along(at, k, pool_.bounds());
    const auto of_rows = difference_along(at, plan_.inner, pool_.bounds());
    if (!of_row || !of_rows || bits(dtype) < 8 || bits(dtype) > 32) return std::nullopt;
    TransposedRowReduction::Tile tile{.dtype = dtype, .from = rows.from, .until = rows.until};
    tile.start = simplify(with_axis(at, k, 0), pool_.bounds());
    if (of_rows->is(1) && !of_row->is(1))
      tile.orientation = Orientation::kAcross, tile.pitch = *of_row;
    else if (of_row->is(1))
      tile.orientation = of_rows->is(0) ? Orientation::kBroadcast : Orientation::kAlong, tile.pitch = *of_rows;
    else
      return std::nullopt;
    tile.vector = vector_of(tile);
    return tile;
  }

  int vector_of(const TransposedRowReduction::Tile& tile) const {
    std::vector<IndexExpr> multiples = {tile.pitch};
    if (tile.orientation == Orientation::kAcross) {
      multiples.emplace_back(tile.from + plan_.leading_rows);
      multiples.push_back((tile.until ? IndexExpr(*tile.until) : pool_.extent(plan_.inner)) + plan_.leading_rows);
    } else {
      multiples.emplace_back(plan_.length);
    }
    // The rows of a block start at a multiple of an access.
    const bool across = tile.orientation == Orientation::kAcross;
    multiples.push_back(
        simplify(across ? with_axis(tile.start, plan_.inner, -plan_.leading_rows) : tile.start, pool_.bounds()));
    return elements_of_access(multiples, tile.bytes(), pool_.bounds());
  }

  // True for contiguous rows that are not whole words or pairs of words: a block copies them from its first row's
  // start.
  bool starts_unaligned(const TransposedRowReduction::Tile& tile) const {
    const IndexExpr first = with_axis(tile.start, plan_.inner, 0);
    return plan_.leading_rows == 0 && plan_.length < kAsWords && tile.vector * tile.bytes() <= 4 &&
           tile.pitch.is(plan_.length) && proves_multiple_of(first, 4 / tile.bytes(), pool_.bounds());
  }

  bool see(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kReduce && std::ranges::find(form_.reductions, id) == form_.reductions.end()) return false;
    if (n.op != ExprOp::kLoad) return true;
    std::vector<std::uint32_t> here;
    std::ranges::set_intersection(along_, depends_[id], std::back_inserter(here));
    const bool of_rows = std::ranges::binary_search(depends_[id], plan_.inner);
    if (here.empty()) return true;
    std::optional<TransposedRowReduction::Tile> tile;
    // A row that a loaded value names is read in place: the position's steps do not tell where the next row begins.
    const IndexExpr at = position_of(graph_, pool_, id);
    if (const auto rows = rows_of(n.args[0]); here.size() == 1 && rows && !by_values(at))
      tile = tile_at(at, here[0], n.dtype, *rows);
    if (!tile) return !of_rows || (by_values(at) && here.size() == 1 && step_is(at, here[0], 1));
    across_ = across_ || tile->orientation == Orientation::kAcross;
    along_rows_ = along_rows_ || tile->orientation == Orientation::kAlong;
    tile->value = n.source;
    const auto is_it = [&](const TransposedRowReduction::Tile& t) {
      return t.value == tile->value && t.start == tile->start && t.pitch == tile->pitch &&
             t.orientation == tile->orientation && t.from == tile->from && t.until == tile->until;
    };
    const auto known = std::ranges::find_if(plan_.tiles, is_it);
    plan_.tile_of[id] = static_cast<std::size_t>(known - plan_.tiles.begin());
    if (known == plan_.tiles.end()) plan_.tiles.push_back(*std::move(tile));
    return true;
  }

  bool see_outputs() {
    std::vector<bool> taken(plan_.tiles.size(), false);
    for (const KernelOutput& output : form_.kernel.outputs) {
      const std::size_t number = plan_.results.size();
      plan_.results.emplace_back();
      if (form_.columns.empty() || is_of_rows(form_, output)) continue;
      if (!columns_without(form_, output).empty() || output.type.dtype == DType::kBool) return false;
      std::optional<TransposedRowReduction::Tile> tile =
          tile_at(position_of(pool_, output), form_.columns[0], output.type.dtype);
      if (!tile || tile->orientation == Orientation::kBroadcast) return false;
      if (tile->orientation == Orientation::kAlong) {
        along_rows_ = true;
        if (!starts_unaligned(*tile)) {
          narrowest_along_ = std::min(narrowest_along_, tile->vector);
          continue;
        }
      } else {
        across_ = true;
      }
      const auto suits = [&](std::size_t i) {
        return !taken[i] && plan_.tiles[i].orientation != Orientation::kBroadcast &&
               plan_.tiles[i].bytes() == tile->bytes();
      };
      std::size_t mine = 0;
      while (mine < taken.size() && !suits(mine)) ++mine;
      if (mine < taken.size()) taken[mine] = true, plan_.reuses_tile_of[number] = mine;
      plan_.results.back() = *std::move(tile);
    }
    return true;
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  Dependences depends_;
  std::vector<std::uint32_t> along_;          // axes that are contiguous along a row
  bool across_ = false, along_rows_ = false;  // some operand is strided; some is contiguous
  int narrowest_along_ = kMostWidth;
  TransposedRowReduction plan_;
};

int power_of_two_within(std::int64_t n, int least, int most) {
  return std::clamp(static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(n))), least, most);
}

// Lanes per line: enough that few sectors are shared with other blocks.
int wanted_lanes(int bytes_of_access) {
  return bytes_of_access >= 16 ? 8 : bytes_of_access == 8 ? 16 : 32;
}

// Tiles that are loaded or stored, without those shared by rows.
std::vector<TransposedRowReduction::Tile> tiles_of_rows(const TransposedRowReduction& plan) {
  std::vector<TransposedRowReduction::Tile> tiles;
  for (const TransposedRowReduction::Tile& tile : plan.tiles)
    if (tile.orientation != TransposedRowReduction::Orientation::kBroadcast) tiles.push_back(tile);
  for (const auto& tile : plan.results)
    if (tile) tiles.push_back(*tile);
  return tiles;
}

// Chooses the vectors of strided accesses.
void choose_grids(TransposedRowReduction& plan) {
  for (const TransposedRowReduction::Tile& tile : tiles_of_rows(plan)) {
    const int most = std::min(plan.rows, kAccessBytes / tile.bytes());
    TransposedRowReduction::Grid& grid =
        plan.grids.try_emplace(tile.bytes(), TransposedRowReduction::Grid{.vector = most}).first->second;
    if (tile.orientation == TransposedRowReduction::Orientation::kAcross)
      grid.vector = std::min(grid.vector, tile.vector);
  }
  for (auto& [bytes, grid] : plan.grids)
    grid.lanes = std::min(wanted_lanes(grid.vector * bytes), plan.rows / grid.vector);
}

int words_of_access(int width, int bytes) {
  return std::max(1, width * bytes / 4);
}

// Chooses the largest width per lane without bank conflicts.
void choose_width(TransposedRowReduction& plan, int narrowest_along) {
  const auto fits = [&](int width) {
    if (plan.length % width != 0 || width > narrowest_along) return false;
    for (const TransposedRowReduction::Tile& tile : plan.tiles)
      if (words_of_access(width, tile.bytes()) > 4) return false;
    return std::ranges::all_of(plan.grids, [&](const auto& grid) {
      const int words = words_of_access(width, grid.first);
      return words * grid.second.lanes <= kWarpLanes;
    });
  };
  plan.width = kMostWidth;
  while (plan.width > 1 && !fits(plan.width)) plan.width /= 2;
}

// True if few lanes per row are possible: the lanes of a warp then belong to neighbouring rows read by one access, and
// their distance can be chosen. False if they store contiguous elements, since few lanes make no whole sectors.
bool may_have_few_lanes(const TransposedRowReduction& plan) {
  if (!std::ranges::all_of(plan.results, [](const auto& result) { return result.has_value(); })) return false;
  return std::ranges::all_of(plan.grids, [&](const auto& grid) {
    return words_of_access(plan.width, grid.first) == 1 && grid.second.vector >= kWarpLanes / kFewLanes;
  });
}

void choose_lanes(TransposedRowReduction& plan, int code) {
  int without_conflicts = 1;
  for (const auto& [bytes, grid] : plan.grids)
    without_conflicts = std::max(without_conflicts, kWarpLanes / words_of_access(plan.width, bytes));
  if (may_have_few_lanes(plan)) without_conflicts = kFewLanes;
  // Fewer elements per lane if they are expensive, because their loop is unrolled.
  const int of_lane = std::clamp(kMaxUnrolledInstructions / std::max(1, code), 1, kOfLane);
  const int wanted =
      std::max(without_conflicts, power_of_two_within((plan.length + of_lane - 1) / of_lane, 1, kWarpLanes));
  plan.lanes = std::min(wanted, power_of_two_within(plan.length / plan.width, 1, kWarpLanes));
  // Warps have rows for all of their lanes, or for none.
  const auto whole = [&] {
    return kWarpLanes / plan.lanes <= plan.rows &&
           proves_multiple_of(plan.extent() + plan.leading_rows, kWarpLanes / plan.lanes,
                              plan.form.kernel.pool.bounds()) &&
           plan.leading_rows % (kWarpLanes / plan.lanes) == 0;
  };
  while (!whole()) plan.lanes *= 2;
}

void place_tiles(TransposedRowReduction& plan) {
  for (auto& [bytes, grid] : plan.grids) {
    const int unit = words_of_access(plan.width, bytes), words = (plan.length * bytes + 3) / 4;
    grid.pitch = (words + unit - 1) / unit * unit;
    if (unit == 1 && plan.lanes < kWarpLanes)  // odd multiple of the lanes: the rows of a warp are in different banks
      grid.pitch = (words + plan.lanes - 1) / (2 * plan.lanes) * (2 * plan.lanes) + plan.lanes;
    for (TransposedRowReduction::Tile& tile : plan.tiles)
      if (tile.orientation == TransposedRowReduction::Orientation::kAlong && tile.bytes() == bytes)
        tile.vector = std::min(tile.vector, 4 * unit / bytes);
    grid.skew = ((kWarpLanes / grid.lanes - grid.vector * grid.pitch) % kWarpLanes + kWarpLanes) % kWarpLanes;
    if (grid.lanes == 1) grid.skew = 0;
  }
  const auto place = [&](TransposedRowReduction::Tile& tile) {
    tile.place = plan.words;
    int words = (plan.length * tile.bytes() + 3) / 4;
    if (tile.orientation != TransposedRowReduction::Orientation::kBroadcast) {
      const TransposedRowReduction::Grid& grid = plan.grid(tile);
      words = plan.rows * grid.pitch + plan.rows / grid.vector * grid.skew;
    }
    plan.words += (words + 3) / 4 * 4;
  };
  for (TransposedRowReduction::Tile& tile : plan.tiles) place(tile);
  for (std::size_t i = 0; i < plan.results.size(); ++i) {
    if (!plan.results[i]) continue;
    const auto other = plan.reuses_tile_of.find(i);
    if (other == plan.reuses_tile_of.end())
      place(*plan.results[i]);
    else
      plan.results[i]->place = plan.tiles[other->second].place;
  }
}

// Bytes of the requested sectors divided by bytes of the elements.
double sectors_read(const TransposedRowReduction& plan, const TransposedRowReduction::Tile& tile) {
  const Bounds& bounds = plan.form.kernel.pool.bounds();
  const double access = tile.vector * tile.bytes();
  double together = plan.length * tile.bytes();  // contiguous bytes
  bool whole = plan.length * tile.bytes() % kSectorBytes == 0;
  if (tile.orientation == TransposedRowReduction::Orientation::kAcross) {
    const TransposedRowReduction::Grid& grid = plan.grid(tile);
    const auto neighbours = static_cast<double>(value_at_hint(plan.extent(), bounds.symbols));
    together = std::min<double>(grid.lanes * grid.vector, neighbours) * tile.bytes();
    whole = proves_multiple_of(tile.pitch, kSectorBytes / tile.bytes(), bounds);
  }
  if (whole && together >= kSectorBytes) return 1;
  return (together + kSectorBytes - std::min<double>(access, kSectorBytes)) / together;
}

void count_sectors(TransposedRowReduction& plan) {
  double bytes = 0, asked = 0;
  for (const TransposedRowReduction::Tile& tile : tiles_of_rows(plan)) {
    const bool stored_along =
        tile.value == kNone && tile.orientation == TransposedRowReduction::Orientation::kAlong;  // stored word by word
    bytes += tile.bytes();
    asked += tile.bytes() * (stored_along ? 1 : sectors_read(plan, tile));
  }
  for (std::size_t i = 0; i < plan.results.size(); ++i) {
    if (plan.results[i]) continue;
    const double stored = bits(plan.form.kernel.outputs[i].type.dtype) / 8.0;
    bytes += stored, asked += stored;
  }
  for (const TransposedRowReduction::Tile& tile : plan.tiles)  // once per block
    if (tile.orientation == TransposedRowReduction::Orientation::kBroadcast)
      asked += static_cast<double>(tile.bytes()) / plan.rows;
  plan.sector_overfetch = asked / bytes;
}

int blocks_at_once(const TransposedRowReduction& plan, const Target& target) {
  constexpr int kReserved = 1024;  // bytes of shared memory reserved per block
  return std::min(target.max_threads_per_multiprocessor / plan.threads,
                  (target.shared_bytes_per_block + kReserved) / (4 * plan.words + kReserved));
}

// A factor for the predicted time relative to a copy.
double demerits(const TransposedRowReduction& plan, const Target& target) {
  constexpr double kBurst = 64;  // bytes per memory burst
  double worse = plan.sector_overfetch;
  for (const TransposedRowReduction::Tile& tile : tiles_of_rows(plan))
    if (tile.orientation == TransposedRowReduction::Orientation::kAcross && plan.rows * tile.bytes() < kBurst)
      worse *= 1.1;
  const double blocks = static_cast<double>(blocks_of(plan)), busy = blocks / target.multiprocessors;
  const int at_once = blocks_at_once(plan, target);
  if (at_once == 1) worse *= 1.3;  // a single block per multiprocessor overlaps nothing
  if (at_once == 2) worse *= 1.05;
  if (busy < 1) worse /= std::pow(busy, 0.125);
  return worse;
}

std::optional<TransposedRowReduction> of_rows(const TransposedRowReduction& read, int rows, int narrowest_along,
                                              int code, const Target& target) {
  TransposedRowReduction plan = read;
  plan.rows = rows;
  plan.leading_rows %= rows;
  const std::int64_t neighbours = value_at_hint(plan.extent(), plan.form.kernel.pool.bounds().symbols);
  for (const TransposedRowReduction::Tile& tile : tiles_of_rows(plan))
    if (tile.orientation == TransposedRowReduction::Orientation::kAcross && rows * tile.bytes() < kLeast &&
        rows < neighbours)
      return std::nullopt;
  choose_grids(plan);
  choose_width(plan, narrowest_along);
  choose_lanes(plan, code);
  place_tiles(plan);
  constexpr int kReserved = 1024, kLarge = 48 * 1024;
  if (4 * plan.words + kReserved > target.shared_bytes_per_block) return std::nullopt;
  const bool large = 4 * plan.words > kLarge;
  plan.threads = std::clamp(plan.rows * plan.lanes, large ? 256 : kWarpLanes, large ? 512 : 256);
  count_sectors(plan);
  return plan;
}

}  // namespace

int TransposedRowReduction::Tile::bytes() const {
  return bits(dtype) / 8;
}

std::int64_t blocks_of(const TransposedRowReduction& plan) {
  const ExprPool& pool = plan.form.kernel.pool;
  const Symbols& symbols = pool.bounds().symbols;
  const std::int64_t outer = std::max<std::int64_t>(1, value_at_hint(point_count(pool, plan.outer), symbols));
  return outer * std::max<std::int64_t>(1, value_at_hint(plan.strips(), symbols));
}

std::vector<TransposedRowReduction> transposed_row_reduction(const RowForm& original, const Graph& graph,
                                                             const Target& target) {
  const RowForm form = with_rows_merged(original, graph);
  TransposedRowReductionReader reader(form, graph);
  const std::optional<TransposedRowReduction> read = reader.read();
  if (!read) return {};
  const std::int64_t neighbours = value_at_hint(read->extent(), form.kernel.pool.bounds().symbols);
  const int code = code_of_row(form, graph);
  std::vector<std::pair<double, TransposedRowReduction>> candidates;
  for (int rows = kMostRowsOfBlock; rows >= kFewestNeighbours; rows /= 2) {
    if (rows / 2 >= neighbours) continue;
    std::optional<TransposedRowReduction> plan = of_rows(*read, rows, reader.narrowest_along(), code, target);
    if (plan) candidates.emplace_back(demerits(*plan, target), *std::move(plan));
  }
  std::ranges::stable_sort(candidates, {}, [](const auto& plan) { return plan.first; });
  std::vector<TransposedRowReduction> result;
  for (auto& plan : candidates)
    if (result.size() < kMaxCandidates) result.push_back(std::move(plan.second));
  return result;
}

std::string name_of(const TransposedRowReduction& plan) {
  return fmt::format("{} rows turned in shared memory, {} of {} threads each", plan.rows, plan.lanes, plan.threads);
}

}  // namespace fusec
