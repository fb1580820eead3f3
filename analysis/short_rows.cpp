#include "analysis/short_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "analysis/loads.h"
#include "analysis/row_values.h"
#include "analysis/target.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::int64_t kFewestRows = 64;  // fewer are soon done by a warp each
constexpr std::int64_t kLongest = 512, kLongestAlone = 320, kLongestRepeated = 1100;  // elements of a row
constexpr int kMostTurnsOfLane = 64;                                                  // elements of a lane
constexpr int kMostTurnsAlone = 96;                                                   // of which it keeps nothing
constexpr int kMostElements = 20 * 1024;  // of shared memory, which several blocks share
constexpr int kFewestBeside = 8;          // rows of a block
constexpr int kMostShortRowThreads = 512;
constexpr int kMostRuns = 64;  // of a block
constexpr int kVectorBits = 128;

bool is_word(ScalarType type) {
  return type == ScalarType::kFloat32 || type == ScalarType::kInt32 || type == ScalarType::kUInt32;
}
bool is_stored_as_word(ScalarType type) {
  return is_word(type) || type == ScalarType::kBool;
}

// Reads the form: which loads and stores are of whole rows that follow one another, which of rows that repeat, and
// which of vectors beside them.
class ShortRowsReader {
 public:
  ShortRowsReader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  // Tiles and loads; nothing where some access is of another kind.
  std::optional<ShortRows> read() {
    if (!find_length()) return std::nullopt;
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (!see(id)) return std::nullopt;
    if (std::ranges::none_of(way_.tiles, [](const ShortRows::Tile& t) { return !t.beside; })) return std::nullopt;
    const bool alone = std::ranges::none_of(way_.tiles, &ShortRows::Tile::beside);
    const bool repeats = way_.along_last && rows_begin_within(kVectorBits);
    if (way_.length > (repeats ? kLongestRepeated : alone ? kLongestAlone : kLongest)) return std::nullopt;
    if (!see_outputs() || is_taken_by_vectors() || !rows_begin_within(8 * kSectorBytes)) return std::nullopt;
    if (way_.along_last) go_along_last_axis();
    for (ShortRows::Tile& tile : way_.tiles)
      narrowest_ = tile.beside ? narrowest_ : std::min(narrowest_, bits(tile.dtype));
    return way_;
  }
  int narrowest_bits() const { return narrowest_; }

 private:
  bool find_length() {
    std::optional<std::int64_t> length;
    std::vector<std::uint32_t> along = form_.columns;
    if (form_.rows.empty() || form_.columns.size() > 1) return false;
    for (const ExprId r : form_.reductions) {
      if (pool_[r].axes.size() != 1) return false;
      along.push_back(pool_[r].axes[0]);
    }
    for (const std::uint32_t axis : along) {
      const auto extent = pool_.extent(axis).as_constant();
      if (!extent || (length && *length != *extent)) return false;
      length = extent;
    }
    if (!length || *length < 2 || *length > kLongestRepeated) return false;
    std::ranges::sort(along);
    along.erase(std::unique(along.begin(), along.end()), along.end());
    along_ = std::move(along);
    way_.length = static_cast<int>(*length);
    for (const std::uint32_t a : form_.rows) flat_row_ = flat_row_ * pool_.extent(a) + IndexExpr::axis(a);
    return true;
  }

  bool is_of_rows(const IndexExpr& at, std::uint32_t axis) const {
    return simplify(at - flat_row_ * way_.length - IndexExpr::axis(axis), pool_.bounds()).is(0);
  }

  bool depends_on_rows(ExprId id) const {
    return std::ranges::any_of(form_.rows,
                               [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); });
  }

  bool see(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kReduce && std::ranges::find(form_.reductions, id) == form_.reductions.end()) return false;
    if (n.op != ExprOp::kLoad) return true;
    std::vector<std::uint32_t> here;
    for (const std::uint32_t a : along_)
      if (std::ranges::binary_search(depends_[id], a)) here.push_back(a);
    if (here.empty()) return true;  // of the row as a whole, or of all rows
    const bool has_guard = !n.args.empty() && n.args[0] != kNoExpr;
    if (here.size() > 1 || has_guard || !is_stored_as_word(n.type) || bits(n.dtype) < 8 || bits(n.dtype) > 32)
      return false;
    ShortRows::Tile tile{.value = n.source, .dtype = n.dtype, .type = n.type};
    const IndexExpr at = position_of(graph_, pool_, id);
    if (!is_of_rows(at, here[0]) && !repeats(at, here[0], tile)) return false;
    const auto known = std::ranges::find(way_.tiles, tile);
    way_.tile_of[id] = static_cast<std::size_t>(known - way_.tiles.begin());
    if (known == way_.tiles.end()) way_.tiles.push_back(tile);
    return true;
  }

  // A row that all of them share, or that those along the last axis do, or rows that follow one another along that.
  bool repeats(const IndexExpr& at, std::uint32_t axis, ShortRows::Tile& tile) {
    tile.start = simplify(at - IndexExpr::axis(axis), pool_.bounds());
    if (mentions(tile.start, Variable{Variable::Kind::kAxis, axis})) return false;
    tile.whole = false, tile.beside = true;
    const auto is_of_loads = [](const Variable& v) { return v.kind == Variable::Kind::kValue; };
    if (std::ranges::any_of(variables_of(tile.start), is_of_loads)) return false;
    const Variable last{Variable::Kind::kAxis, form_.rows.back()};
    if (mentions(tile.start, last)) {
      tile.start = simplify(tile.start - IndexExpr::axis(last.id) * way_.length, pool_.bounds());
      if (mentions(tile.start, last)) return false;
      tile.beside = false;
      way_.along_last = true;
    }
    for (const std::uint32_t a : form_.rows)
      way_.along_last = way_.along_last || mentions(tile.start, Variable{Variable::Kind::kAxis, a});
    return true;
  }

  // A result takes over the tile of an operand of its type: whoever stores an element is the only one to read it.
  bool see_outputs() {
    std::vector<bool> taken(way_.tiles.size(), false);
    for (const KernelOutput& output : form_.kernel.outputs) {
      if (!form_.columns.empty() && columns_without(form_, output).empty()) {
        const ScalarType type = pool_[output.expr].type;
        const DType dtype = output.type.dtype;
        const IndexExpr at = simplify(flat_index(output.type.shape, output.index), pool_.bounds());
        if (!is_word(type) || bits(dtype) < 8 || bits(dtype) > 32 || dtype == DType::kBool) return false;
        if (!is_of_rows(at, form_.columns[0])) return false;
        std::size_t mine = 0;
        while (mine < taken.size() && (taken[mine] || !way_.tiles[mine].whole || way_.tiles[mine].type != type)) ++mine;
        if (mine == taken.size()) {
          way_.tiles.push_back({.dtype = dtype, .type = type});
          taken.push_back(false);
        }
        taken[mine] = true;
        narrowest_ = std::min(narrowest_, bits(dtype));
        way_.stored.push_back(mine);
      } else {
        way_.stored.push_back(ShortRows::kNoTile);
      }
    }
    return true;
  }

  // Runs go along the last axis of rows.
  void go_along_last_axis() {
    const std::uint32_t last = form_.rows.back();
    const IndexExpr first_row = simplify(flat_row_ - IndexExpr::axis(last), pool_.bounds());
    for (ShortRows::Tile& tile : way_.tiles)
      if (tile.whole) tile.start = simplify(first_row * way_.length, pool_.bounds());
    int most = 0;
    for (const std::uint32_t a : form_.rows) {
      if (a == last) continue;
      int repeated = 0;
      for (const ShortRows::Tile& tile : way_.tiles)
        if (!tile.beside && !mentions(tile.start, Variable{Variable::Kind::kAxis, a})) repeated += bits(tile.dtype);
      if (repeated > most) way_.repeated = a, most = repeated;
    }
    for (ShortRows::Tile& tile : way_.tiles)
      tile.again = !way_.repeated || mentions(tile.start, Variable{Variable::Kind::kAxis, *way_.repeated});
  }

  // Lanes take such rows by a vector each (row_layout): what a warp asks for has no gaps.
  bool is_taken_by_vectors() const {
    int widest = 8;
    for (const ShortRows::Tile& tile : way_.tiles) widest = std::max(widest, tile.beside ? 0 : bits(tile.dtype));
    for (std::size_t i = 0; i < way_.stored.size(); ++i)
      if (way_.stored[i] != ShortRows::kNoTile) widest = std::max(widest, bits(form_.kernel.outputs[i].type.dtype));
    return takes_lane_each(way_.length, widest);
  }

  // Do some rows begin within pieces of memory of so many bits?
  bool rows_begin_within(int piece) const {
    const auto within = [&](DType dtype) { return way_.length * bits(dtype) % piece != 0; };
    for (const ShortRows::Tile& tile : way_.tiles)
      if (!tile.beside && within(tile.dtype)) return true;
    for (std::size_t i = 0; i < way_.stored.size(); ++i)
      if (way_.stored[i] != ShortRows::kNoTile && within(form_.kernel.outputs[i].type.dtype)) return true;
    return false;
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  std::vector<std::vector<std::uint32_t>> depends_;
  std::vector<std::uint32_t> along_;  // axes that run along a row
  IndexExpr flat_row_ = 0;
  int narrowest_ = 32;
  ShortRows way_;
};

// What a lane may have: more where it goes over its elements once, and keeps nothing.
int most_turns(const RowForm& form) {
  const bool once = form.columns.empty() && reduction_loops(form).size() == 1;
  return once ? kMostTurnsAlone : kMostTurnsOfLane;
}

// So that the lanes of a warp are in different banks: rows begin at multiples of a power of two, apart as they are at
// all multiples of the number of lanes, which are at places that leave unlike remainders there.
bool divide_row(ShortRows& way, int most_turns) {
  if (way.lanes == kWarpLanes) {
    way.stride = kWarpLanes, way.turns = (way.length + kWarpLanes - 1) / kWarpLanes;
    return way.turns <= most_turns;
  }
  const int even = 1 << std::countr_zero(static_cast<unsigned>(way.length));
  if (way.lanes < even) return false;
  way.apart = way.lanes / even;
  way.step = way.lanes == 1 ? way.length : (way.length + way.lanes - 1) / way.lanes | 1;
  way.turns = way.step;
  return way.turns <= most_turns && way.least_turns() > 0;
}

// Whole sectors to every block where runs go along all rows, and tiles that fit; what stands beside the rows is read
// for several of them.
bool place_tiles(ShortRows& way, int narrowest_bits, const Target& target, const Bounds& bounds) {
  way.rows = way.threads / way.lanes;
  const bool beside = std::ranges::any_of(way.tiles, &ShortRows::Tile::beside);
  if (way.rows < (beside ? kFewestBeside : 1)) return false;
  if (!way.along_last && way.rows * way.length * narrowest_bits % (8 * kSectorBytes) != 0) return false;
  way.elements = 0;
  for (ShortRows::Tile& tile : way.tiles) {
    tile.aligned = tile.beside || begins_aligned(way, tile.start, tile.dtype, bounds);
    tile.place = way.elements;
    const int elements = way.length * (tile.beside ? 1 : way.rows), vector = kVectorBits / bits(tile.dtype);
    tile.elements = tile.aligned ? (elements + 3) / 4 * 4 : (elements + 2 * (vector - 1)) / vector * vector;
    way.elements += tile.elements * (tile.again ? way.side_by_side : 1);
  }
  return way.elements <= kMostElements && 4 * way.elements <= target.shared_bytes_per_block;
}

// Cycles of a multiprocessor, of what all threads together issue and ask for, and until all is done.
struct ShortRowsCost {
  double work = 0, time = 0;
};

class Costs {
 public:
  Costs(const RowForm& form, const Graph& graph, const Target& target)
      : form_(form), target_(target), code_(code_of_row(form, graph)) {}

  int code() const { return code_; }
  std::int64_t count(std::uint32_t axis) const {
    return std::max<std::int64_t>(1, value_at_hint(form_.kernel.pool.extent(axis), form_.kernel.pool.bounds().symbols));
  }
  std::int64_t rows() const {
    std::int64_t rows = 1;
    for (const std::uint32_t a : form_.rows) rows *= count(a);
    return rows;
  }

  ShortRowsCost of(const ShortRows& way) const {
    constexpr double kAround = 60, kMeeting = 8, kLaunch = 3000, kOfSector = 1;
    constexpr double kIdle = 20;    // of each warp of a block, of which few have rows where a launch has few of them
    constexpr double kLatency = 2;  // cycles of an instruction of a scheduler's only warp, which finds some to overlap
    constexpr double kSchedulers = 4, kWantedWarps = 16, kSharedBytes = 164.0 * 1024;
    const double warps = way.block_threads() / static_cast<double>(kWarpLanes);
    double once = kAround + (has_constant_rows() ? 0 : kIdle * warps),
           each = way.turns * code_;  // of a block, of a run
    double sectors_once = 0, sectors_each = 0;
    for (int lanes = way.lanes; lanes > 1; lanes /= 2) each += kMeeting * static_cast<double>(form_.reductions.size());
    for (const ShortRows::Tile& tile : way.tiles) {
      (tile.again ? each : once) += instructions_to_copy(way, tile, tile.again ? way.threads : way.block_threads());
      (tile.again ? sectors_each : sectors_once) += sectors_of(way, tile);
    }
    const double of_thread = once + way.times * each;
    const double blocks = blocks_of(way), sectors = (sectors_once + way.runs() * sectors_each) * blocks;
    const double of_multiprocessor = std::ceil(blocks / target_.multiprocessors) * warps;
    const double together = std::floor(kSharedBytes / (4.0 * way.elements + 1024)) * warps;
    const double waiting = std::max(1.0, kWantedWarps / std::max(1.0, together));
    const double asking = kOfSector * sectors / target_.multiprocessors;
    return {.work = of_thread * warps * blocks / kSchedulers / target_.multiprocessors + asking,
            .time = kLaunch + asking + of_thread * std::max(kLatency, waiting * of_multiprocessor / kSchedulers)};
  }

 private:
  bool has_constant_rows() const {
    return simplify(point_count(form_.kernel.pool, form_.rows), form_.kernel.pool.bounds()).as_constant().has_value();
  }

  double blocks_of(const ShortRows& way) const {
    const auto divided = [](std::int64_t count, int by) { return static_cast<double>((count + by - 1) / by); };
    if (!way.along_last) return divided(rows(), way.rows);
    double blocks = divided(count(form_.rows.back()), way.rows);
    for (const std::uint32_t a : form_.rows)
      if (a != form_.rows.back()) blocks *= divided(count(a), a == way.repeated ? way.runs() : 1);
    return blocks;
  }

  // Of a thread, in the mean: warps have whole turns.
  static double instructions_to_copy(const ShortRows& way, const ShortRows::Tile& tile, int threads) {
    constexpr double kOfTile = 12, kOfEnds = 24, kOfVector = 6, kOfElement = 1.5;
    const int vector = tile.beside ? 1 : kVectorBits / bits(tile.dtype);
    const int of_turn = kWarpLanes * vector, elements = way.length * (tile.beside ? 1 : way.rows);
    const double turns = static_cast<double>((elements + of_turn - 1) / of_turn) * kWarpLanes / threads;
    return kOfTile + turns * (kOfVector + kOfElement * vector) + (tile.aligned ? 0 : kOfEnds);
  }

  // Of a run; an operand's tile goes back as well where it is stored.
  static double sectors_of(const ShortRows& way, const ShortRows::Tile& tile) {
    const double elements = static_cast<double>(way.length) * (tile.beside ? 1 : way.rows);
    return std::ceil(elements * bits(tile.dtype) / (8 * kSectorBytes)) + (tile.aligned ? 0 : 1);
  }

  const RowForm& form_;
  const Target& target_;
  const int code_;
};

}  // namespace

int ShortRows::least_turns() const {
  return stride > 1 ? length / stride : length - (lanes - 1) * step;
}

bool begins_aligned(const ShortRows& way, const IndexExpr& start, DType dtype, const Bounds& bounds) {
  const int vector = kVectorBits / bits(dtype);
  return way.rows * way.length % vector == 0 && proves_multiple_of(start, vector, bounds);
}

std::vector<ShortRows> short_rows(const RowForm& form, const Graph& graph, const Target& target) {
  const Costs costs(form, graph, target);
  if (costs.rows() < kFewestRows) return {};
  ShortRowsReader reader(form, graph);
  const auto read = reader.read();
  if (!read) return {};
  const std::int64_t most_runs = read->repeated ? std::min<std::int64_t>(kMostRuns, costs.count(*read->repeated)) : 1;
  const int most = most_turns(form);
  std::vector<std::pair<ShortRowsCost, ShortRows>> ways;
  for (const int lanes : {1, 2, 4, 8, 16, kWarpLanes}) {
    ShortRows way = *read;
    way.lanes = lanes;
    if (!divide_row(way, most) || way.turns * costs.code() > kMostUnrolled) continue;  // loops are unrolled
    for (way.threads = kWarpLanes * way.apart; way.threads <= kMostShortRowThreads; way.threads *= 2)
      for (way.side_by_side = 1; way.side_by_side <= most_runs && way.block_threads() <= kMostShortRowThreads;
           way.side_by_side *= 2) {
        if (!place_tiles(way, reader.narrowest_bits(), target, form.kernel.pool.bounds())) continue;
        for (way.times = 1; way.runs() <= most_runs; way.times *= 2) ways.emplace_back(costs.of(way), way);
        way.times = 1;
      }
  }
  // Of those that take about as long as the fastest one, the one of the least work.
  constexpr double kAboutAsLong = 1.2;
  double least = 0;
  for (const auto& [cost, way] : ways) least = least == 0 ? cost.time : std::min(least, cost.time);
  std::ranges::stable_sort(ways, {}, [&](const auto& way) {
    const bool fast = way.first.time <= kAboutAsLong * least;
    return std::pair(!fast, fast ? way.first.work : way.first.time);
  });
  std::vector<ShortRows> result;
  for (auto& way : ways) result.push_back(std::move(way.second));
  return result;
}

std::string name_of(const ShortRows& way) {
  const std::string runs = way.runs() == 1 ? "" : fmt::format(" {} by {} times", way.side_by_side, way.times);
  return fmt::format("{} rows{} through shared memory, {} threads each", way.rows, runs, way.lanes);
}

}  // namespace fusec
