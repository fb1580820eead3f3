#include "analysis/turned_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

#include "analysis/lane_sectors.h"
#include "analysis/loads.h"
#include "analysis/row_values.h"
#include "analysis/target.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kAccessBytes = 16, kLeast = 16;    // bytes
constexpr int kMostRowsOfBlock = 128;            // of a block
constexpr std::int64_t kShortestTurnedRow = 16;  // elements of a row: of fewer, a thread may have them all
constexpr std::int64_t kFewestNeighbours = 4;    // rows whose elements are neighbours
constexpr int kMostWidth = 8;                    // elements of a lane at a time
constexpr int kOfLane = 32;                      // elements of a lane, if there are so many lanes
constexpr int kFewLanes = 8;                     // at least, of a row whose elements lanes take one by one
constexpr int kAsWords = 128;  // elements of a row: shorter ones that begin anywhere are stored as words
constexpr std::size_t kMostWays = 4;

// The greatest power of two of elements that an access at each of these positions may have.
int elements_of_access(const std::vector<IndexExpr>& multiples, int bytes, const Bounds& bounds) {
  int elements = kAccessBytes / bytes;
  const auto fits = [&](const IndexExpr& e) { return proves_multiple_of(e, elements, bounds); };
  while (elements > 1 && !std::ranges::all_of(multiples, fits)) elements /= 2;
  return elements;
}

// Of all, neighbours that a guard leaves.
struct Rows {
  std::int64_t from = 0;
  std::optional<std::int64_t> until;
};

// Reads the form: what lies across rows, along them, beside them.
class TurnedRowsReader {
 public:
  TurnedRowsReader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  std::optional<TurnedRows> read() {
    if (!find_length() || !find_neighbours()) return std::nullopt;
    find_ahead();
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (!see(id)) return std::nullopt;
    if (!see_outputs() || !across_ || !along_rows_) return std::nullopt;
    way_.form = form_;
    return way_;
  }
  // Elements of a lane's access to what lies along a row and is stored.
  int narrowest_along() const { return narrowest_along_; }

 private:
  using Lie = TurnedRows::Lie;

  bool find_length() {
    if (form_.rows.empty() || form_.columns.size() > 1 || !form_.segments.empty()) return false;
    std::optional<std::int64_t> length;
    along_ = form_.columns;
    for (const ExprId r : form_.reductions) {
      if (pool_[r].axes.size() != 1) return false;
      along_.push_back(pool_[r].axes[0]);
    }
    for (const std::uint32_t axis : along_) {
      const auto extent = pool_.extent(axis).as_constant();
      if (!extent || (length && *length != *extent)) return false;
      length = extent;
    }
    std::ranges::sort(along_);
    along_.erase(std::unique(along_.begin(), along_.end()), along_.end());
    if (!length || *length < kShortestTurnedRow || *length > kMostRowsOfBlock * 1024) return false;
    way_.length = static_cast<int>(*length);
    return true;
  }

  IndexExpr position(const KernelOutput& output) const {
    return simplify(flat_index(output.type.shape, output.index), pool_.bounds());
  }

  // The rows' axis along which memory runs where it does not run along the row.
  bool find_neighbours() {
    std::vector<IndexExpr> places;
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (pool_[id].op == ExprOp::kLoad) places.push_back(position_of(graph_, pool_, id));
    for (const KernelOutput& output : form_.kernel.outputs) places.push_back(position(output));
    for (const IndexExpr& at : places)
      for (const std::uint32_t a : form_.rows) {
        const bool runs = std::ranges::any_of(along_, [&](std::uint32_t k) {
          return mentions(at, Variable{Variable::Kind::kAxis, k});
        });
        if (!runs || !step_is(at, a, 1)) continue;
        way_.inner = a;
        std::ranges::copy_if(form_.rows, std::back_inserter(way_.outer), [&](std::uint32_t b) { return b != a; });
        return value_at_hint(pool_.extent(a), pool_.bounds().symbols) >= kFewestNeighbours;
      }
    return false;
  }

  bool step_is(const IndexExpr& at, std::uint32_t axis, std::int64_t by) const {
    const auto step = difference_along(at, axis, pool_.bounds());
    return step && step->is(by);
  }

  // Rows that a guard, if there is one, says a load is of; nothing where it says anything else.
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
    const auto before = simplify(compared->difference - IndexExpr::axis(way_.inner), pool_.bounds()).as_constant();
    if (!before) return std::nullopt;
    const std::int64_t bound = compared->bound - *before;
    return compared->at_least ? Rows{.from = std::max<std::int64_t>(0, bound)} : Rows{.until = bound + 1};
  }

  // Where what lies across memory is of some rows, blocks' rows begin at multiples of a sector behind its first.
  void find_ahead() {
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel))) {
      const ExprNode& n = pool_[id];
      if (n.op != ExprOp::kLoad || n.args[0] == kNoExpr || bits(n.dtype) < 8) continue;
      const auto rows = rows_of(n.args[0]);
      if (!rows || !step_is(position_of(graph_, pool_, id), way_.inner, 1)) continue;
      const std::int64_t sector = kSectorBytes * 8 / bits(n.dtype);
      way_.ahead = static_cast<int>((sector - rows->from % sector) % sector);
      return;
    }
  }

  // How what is at this position for element k of a row lies; nothing for what no tile can have.
  std::optional<TurnedRows::Tile> tile_at(const IndexExpr& at, std::uint32_t k, DType dtype,
                                          const Rows& rows = {}) const {
    const auto of_row = difference_along(at, k, pool_.bounds());
    const auto of_rows = difference_along(at, way_.inner, pool_.bounds());
    if (!of_row || !of_rows || bits(dtype) < 8 || bits(dtype) > 32) return std::nullopt;
    TurnedRows::Tile tile{.dtype = dtype, .from = rows.from, .until = rows.until};
    tile.start = simplify(substitute(at,
                                     [&](Variable v) -> std::optional<IndexExpr> {
                                       if (v != Variable{Variable::Kind::kAxis, k}) return std::nullopt;
                                       return IndexExpr(0);
                                     }),
                          pool_.bounds());
    if (of_rows->is(1) && !of_row->is(1))
      tile.lie = Lie::kAcross, tile.pitch = *of_row;
    else if (of_row->is(1))
      tile.lie = of_rows->is(0) ? Lie::kBeside : Lie::kAlong, tile.pitch = *of_rows;
    else
      return std::nullopt;
    tile.vector = vector_of(tile);
    return tile;
  }

  int vector_of(const TurnedRows::Tile& tile) const {
    std::vector<IndexExpr> multiples = {tile.pitch};
    if (tile.lie == Lie::kAcross) {
      multiples.emplace_back(tile.from + way_.ahead);
      multiples.push_back((tile.until ? IndexExpr(*tile.until) : pool_.extent(way_.inner)) + way_.ahead);
    } else {
      multiples.emplace_back(way_.length);
    }
    // Rows of a block begin at a multiple of what an access has.
    multiples.push_back(simplify(substitute(tile.start,
                                            [&](Variable v) -> std::optional<IndexExpr> {
                                              if (v != Variable{Variable::Kind::kAxis, way_.inner}) return std::nullopt;
                                              return tile.lie == Lie::kAcross ? IndexExpr(-way_.ahead)
                                                                              : IndexExpr::axis(way_.inner);
                                            }),
                                 pool_.bounds()));
    return elements_of_access(multiples, tile.bytes(), pool_.bounds());
  }

  // Rows that follow one another without being whole words or pairs of them: a block's are, from its first one on.
  bool begins_anywhere(const TurnedRows::Tile& tile) const {
    const IndexExpr first = substitute(tile.start, [&](Variable v) -> std::optional<IndexExpr> {
      if (v != Variable{Variable::Kind::kAxis, way_.inner}) return std::nullopt;
      return IndexExpr(0);
    });
    return way_.ahead == 0 && way_.length < kAsWords && tile.vector * tile.bytes() <= 4 && tile.pitch.is(way_.length) &&
           proves_multiple_of(first, 4 / tile.bytes(), pool_.bounds());
  }

  bool see(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kReduce && std::ranges::find(form_.reductions, id) == form_.reductions.end()) return false;
    if (n.op != ExprOp::kLoad) return true;
    std::vector<std::uint32_t> here;
    std::ranges::set_intersection(along_, depends_[id], std::back_inserter(here));
    const bool of_rows = std::ranges::binary_search(depends_[id], way_.inner);
    if (here.empty()) return true;
    std::optional<TurnedRows::Tile> tile;
    if (const auto rows = rows_of(n.args[0]); here.size() == 1 && rows)
      tile = tile_at(position_of(graph_, pool_, id), here[0], n.dtype, *rows);
    if (!tile) return !of_rows;
    across_ = across_ || tile->lie == Lie::kAcross;
    along_rows_ = along_rows_ || tile->lie == Lie::kAlong;
    tile->value = n.source;
    const auto is_it = [&](const TurnedRows::Tile& t) {
      return t.value == tile->value && t.start == tile->start && t.pitch == tile->pitch && t.lie == tile->lie &&
             t.from == tile->from && t.until == tile->until;
    };
    const auto known = std::ranges::find_if(way_.tiles, is_it);
    way_.tile_of[id] = static_cast<std::size_t>(known - way_.tiles.begin());
    if (known == way_.tiles.end()) way_.tiles.push_back(*std::move(tile));
    return true;
  }

  bool see_outputs() {
    std::vector<bool> taken(way_.tiles.size(), false);
    for (const KernelOutput& output : form_.kernel.outputs) {
      const std::size_t number = way_.results.size();
      way_.results.emplace_back();
      if (form_.columns.empty() || is_of_rows(form_, output)) continue;
      if (!columns_without(form_, output).empty() || output.type.dtype == DType::kBool) return false;
      std::optional<TurnedRows::Tile> tile = tile_at(position(output), form_.columns[0], output.type.dtype);
      if (!tile || tile->lie == Lie::kBeside) return false;
      if (tile->lie == Lie::kAlong) {
        along_rows_ = true;
        if (!begins_anywhere(*tile)) {
          narrowest_along_ = std::min(narrowest_along_, tile->vector);
          continue;
        }
      } else {
        across_ = true;
      }
      const auto suits = [&](std::size_t i) {
        return !taken[i] && way_.tiles[i].lie != Lie::kBeside && way_.tiles[i].bytes() == tile->bytes();
      };
      std::size_t mine = 0;
      while (mine < taken.size() && !suits(mine)) ++mine;
      if (mine < taken.size()) taken[mine] = true, way_.takes_over[number] = mine;
      way_.results.back() = *std::move(tile);
    }
    return true;
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  std::vector<std::vector<std::uint32_t>> depends_;
  std::vector<std::uint32_t> along_;          // axes that run along a row
  bool across_ = false, along_rows_ = false;  // something lies so
  int narrowest_along_ = kMostWidth;
  TurnedRows way_;
};

int power_of_two_within(std::int64_t n, int least, int most) {
  return std::clamp(static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(n))), least, most);
}

// Of a line, so many that few of the sectors are others' as well.
int wanted_lanes(int bytes_of_access) {
  return bytes_of_access >= 16 ? 8 : bytes_of_access == 8 ? 16 : 32;
}

// Loaded and stored, without what is beside rows.
std::vector<TurnedRows::Tile> tiles_of_rows(const TurnedRows& way) {
  std::vector<TurnedRows::Tile> tiles;
  for (const TurnedRows::Tile& tile : way.tiles)
    if (tile.lie != TurnedRows::Lie::kBeside) tiles.push_back(tile);
  for (const auto& tile : way.results)
    if (tile) tiles.push_back(*tile);
  return tiles;
}

// The vectors across memory.
void choose_grids(TurnedRows& way) {
  for (const TurnedRows::Tile& tile : tiles_of_rows(way)) {
    const int most = std::min(way.rows, kAccessBytes / tile.bytes());
    TurnedRows::Grid& grid = way.grids.try_emplace(tile.bytes(), TurnedRows::Grid{.vector = most}).first->second;
    if (tile.lie == TurnedRows::Lie::kAcross) grid.vector = std::min(grid.vector, tile.vector);
  }
  for (auto& [bytes, grid] : way.grids)
    grid.lanes = std::min(wanted_lanes(grid.vector * bytes), way.rows / grid.vector);
}

int words_of_access(int width, int bytes) {
  return std::max(1, width * bytes / 4);
}

// As many elements as lanes have without meeting in banks.
void choose_width(TurnedRows& way, int narrowest_along) {
  const auto fits = [&](int width) {
    if (way.length % width != 0 || width > narrowest_along) return false;
    for (const TurnedRows::Tile& tile : way.tiles)
      if (words_of_access(width, tile.bytes()) > 4) return false;
    return std::ranges::all_of(way.grids, [&](const auto& grid) {
      const int words = words_of_access(width, grid.first);
      return words * grid.second.lanes <= kWarpLanes;
    });
  };
  way.width = kMostWidth;
  while (way.width > 1 && !fits(way.width)) way.width /= 2;
}

// Where so few lanes have a row, those of a warp are of neighbours that are read by one access: how far these are apart
// may be chosen. Not where they store elements along memory: lanes are no whole sectors of that.
bool may_have_few_lanes(const TurnedRows& way) {
  if (!std::ranges::all_of(way.results, [](const auto& result) { return result.has_value(); })) return false;
  return std::ranges::all_of(way.grids, [&](const auto& grid) {
    return words_of_access(way.width, grid.first) == 1 && grid.second.vector >= kWarpLanes / kFewLanes;
  });
}

void choose_lanes(TurnedRows& way, int code) {
  int without_conflicts = 1;
  for (const auto& [bytes, grid] : way.grids)
    without_conflicts = std::max(without_conflicts, kWarpLanes / words_of_access(way.width, bytes));
  if (may_have_few_lanes(way)) without_conflicts = kFewLanes;
  // Fewer elements where they are costly, since their turns are unrolled.
  const int of_lane = std::clamp(kMostUnrolled / std::max(1, code), 1, kOfLane);
  const int wanted =
      std::max(without_conflicts, power_of_two_within((way.length + of_lane - 1) / of_lane, 1, kWarpLanes));
  way.lanes = std::min(wanted, power_of_two_within(way.length / way.width, 1, kWarpLanes));
  // Warps that have rows for all of their lanes, or none.
  const auto whole = [&] {
    return kWarpLanes / way.lanes <= way.rows &&
           proves_multiple_of(way.extent() + way.ahead, kWarpLanes / way.lanes, way.form.kernel.pool.bounds()) &&
           way.ahead % (kWarpLanes / way.lanes) == 0;
  };
  while (!whole()) way.lanes *= 2;
}

void place_tiles(TurnedRows& way) {
  for (auto& [bytes, grid] : way.grids) {
    const int unit = words_of_access(way.width, bytes), words = (way.length * bytes + 3) / 4;
    grid.pitch = (words + unit - 1) / unit * unit;
    if (unit == 1 && way.lanes < kWarpLanes)  // an odd multiple of the lanes: rows of a warp are in different banks
      grid.pitch = (words + way.lanes - 1) / (2 * way.lanes) * (2 * way.lanes) + way.lanes;
    for (TurnedRows::Tile& tile : way.tiles)
      if (tile.lie == TurnedRows::Lie::kAlong && tile.bytes() == bytes)
        tile.vector = std::min(tile.vector, 4 * unit / bytes);
    grid.skew = ((kWarpLanes / grid.lanes - grid.vector * grid.pitch) % kWarpLanes + kWarpLanes) % kWarpLanes;
    if (grid.lanes == 1) grid.skew = 0;
  }
  const auto place = [&](TurnedRows::Tile& tile) {
    tile.place = way.words;
    int words = (way.length * tile.bytes() + 3) / 4;
    if (tile.lie != TurnedRows::Lie::kBeside) {
      const TurnedRows::Grid& grid = way.grid(tile);
      words = way.rows * grid.pitch + way.rows / grid.vector * grid.skew;
    }
    way.words += (words + 3) / 4 * 4;
  };
  for (TurnedRows::Tile& tile : way.tiles) place(tile);
  for (std::size_t i = 0; i < way.results.size(); ++i) {
    if (!way.results[i]) continue;
    const auto other = way.takes_over.find(i);
    if (other == way.takes_over.end())
      place(*way.results[i]);
    else
      way.results[i]->place = way.tiles[other->second].place;
  }
}

// Bytes of the sectors that a warp asks for, over those of the elements.
double sectors_asked_for(const TurnedRows& way, const TurnedRows::Tile& tile) {
  const Bounds& bounds = way.form.kernel.pool.bounds();
  const double access = tile.vector * tile.bytes();
  double together = way.length * tile.bytes();  // that follow one another
  bool whole = way.length * tile.bytes() % kSectorBytes == 0;
  if (tile.lie == TurnedRows::Lie::kAcross) {
    const TurnedRows::Grid& grid = way.grid(tile);
    const auto neighbours = static_cast<double>(value_at_hint(way.extent(), bounds.symbols));
    together = std::min<double>(grid.lanes * grid.vector, neighbours) * tile.bytes();
    whole = proves_multiple_of(tile.pitch, kSectorBytes / tile.bytes(), bounds);
  }
  if (whole && together >= kSectorBytes) return 1;
  return (together + kSectorBytes - std::min<double>(access, kSectorBytes)) / together;
}

void count_sectors(TurnedRows& way) {
  double bytes = 0, asked = 0;
  for (const TurnedRows::Tile& tile : tiles_of_rows(way)) {
    const bool stored_along = tile.value == kNone && tile.lie == TurnedRows::Lie::kAlong;  // in words, one by one
    bytes += tile.bytes();
    asked += tile.bytes() * (stored_along ? 1 : sectors_asked_for(way, tile));
  }
  for (std::size_t i = 0; i < way.results.size(); ++i) {
    if (way.results[i]) continue;
    const double stored = bits(way.form.kernel.outputs[i].type.dtype) / 8.0;
    bytes += stored, asked += stored;
  }
  for (const TurnedRows::Tile& tile : way.tiles)  // once a block
    if (tile.lie == TurnedRows::Lie::kBeside) asked += static_cast<double>(tile.bytes()) / way.rows;
  way.asked_for = asked / bytes;
}

int blocks_at_once(const TurnedRows& way, const Target& target) {
  constexpr int kReserved = 1024;  // of shared memory, by each block
  return std::min(target.max_threads_per_multiprocessor / way.threads,
                  (target.shared_bytes_per_block + kReserved) / (4 * way.words + kReserved));
}

// What they take longer than a copy, about.
double demerits(const TurnedRows& way, const Target& target) {
  constexpr double kBurst = 64;  // bytes that memory gives at once
  double worse = way.asked_for;
  for (const TurnedRows::Tile& tile : tiles_of_rows(way))
    if (tile.lie == TurnedRows::Lie::kAcross && way.rows * tile.bytes() < kBurst) worse *= 1.1;
  const double blocks = static_cast<double>(blocks_of(way)), busy = blocks / target.multiprocessors;
  const int at_once = blocks_at_once(way, target);
  if (at_once == 1) worse *= 1.3;  // it reads, computes and stores one after the other
  if (at_once == 2) worse *= 1.05;
  if (busy < 1) worse /= std::pow(busy, 0.125);
  return worse;
}

std::optional<TurnedRows> of_rows(const TurnedRows& read, int rows, int narrowest_along, int code,
                                  const Target& target) {
  TurnedRows way = read;
  way.rows = rows;
  way.ahead %= rows;
  const std::int64_t neighbours = value_at_hint(way.extent(), way.form.kernel.pool.bounds().symbols);
  for (const TurnedRows::Tile& tile : tiles_of_rows(way))
    if (tile.lie == TurnedRows::Lie::kAcross && rows * tile.bytes() < kLeast && rows < neighbours) return std::nullopt;
  choose_grids(way);
  choose_width(way, narrowest_along);
  choose_lanes(way, code);
  place_tiles(way);
  constexpr int kReserved = 1024, kLarge = 48 * 1024;
  if (4 * way.words + kReserved > target.shared_bytes_per_block) return std::nullopt;
  const bool large = 4 * way.words > kLarge;
  way.threads = std::clamp(way.rows * way.lanes, large ? 256 : kWarpLanes, large ? 512 : 256);
  count_sectors(way);
  return way;
}

}  // namespace

int TurnedRows::Tile::bytes() const {
  return bits(dtype) / 8;
}

std::int64_t blocks_of(const TurnedRows& way) {
  const ExprPool& pool = way.form.kernel.pool;
  const Symbols& symbols = pool.bounds().symbols;
  const std::int64_t outer = std::max<std::int64_t>(1, value_at_hint(point_count(pool, way.outer), symbols));
  return outer * std::max<std::int64_t>(1, value_at_hint(way.strips(), symbols));
}

std::vector<TurnedRows> turned_rows(const RowForm& original, const Graph& graph, const Target& target) {
  const RowForm form = with_rows_merged(original, graph);
  TurnedRowsReader reader(form, graph);
  const std::optional<TurnedRows> read = reader.read();
  if (!read) return {};
  const std::int64_t neighbours = value_at_hint(read->extent(), form.kernel.pool.bounds().symbols);
  const int code = code_of_row(form, graph);
  std::vector<std::pair<double, TurnedRows>> ways;
  for (int rows = kMostRowsOfBlock; rows >= kFewestNeighbours; rows /= 2) {
    if (rows / 2 >= neighbours) continue;
    std::optional<TurnedRows> way = of_rows(*read, rows, reader.narrowest_along(), code, target);
    if (way) ways.emplace_back(demerits(*way, target), *std::move(way));
  }
  std::ranges::stable_sort(ways, {}, [](const auto& way) { return way.first; });
  std::vector<TurnedRows> result;
  for (auto& way : ways)
    if (result.size() < kMostWays) result.push_back(std::move(way.second));
  return result;
}

std::string name_of(const TurnedRows& way) {
  return fmt::format("{} rows turned in shared memory, {} of {} threads each", way.rows, way.lanes, way.threads);
}

}  // namespace fusec
