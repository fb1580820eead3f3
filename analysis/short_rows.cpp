#include "analysis/short_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/loads.h"
#include "analysis/row_values.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kSector = 32;
constexpr int kWarp = 32;                                    // lanes, and banks of shared memory
constexpr std::int64_t kFewestRows = 64;                     // fewer are soon done by a warp each
constexpr std::int64_t kLongest = 512, kLongestAlone = 320;  // elements of a row
constexpr int kMostTurns = 40;                               // elements of a lane
constexpr int kMostTurnsAlone = 96;                          // of which it keeps nothing
constexpr int kMostUneven = 12;                              // elements that some lanes have and others have not
constexpr double kMostIdle = 1.4;                            // turns of all lanes, over the elements
constexpr int kMostElements = 12 * 1024;                     // of shared memory: what every kernel may have
constexpr int kWantedElements = 6 * 1024;                    // with which several blocks are on a multiprocessor
constexpr int kFewestBeside = 8;                             // rows of a block
constexpr int kMostThreads = 512;

bool is_word(ScalarType type) {
  return type == ScalarType::kFloat32 || type == ScalarType::kInt32 || type == ScalarType::kUInt32;
}

// Reads the form: which loads and stores are of whole rows that follow one another, and which of vectors beside them.
class Reader {
 public:
  Reader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  // Tiles and loads; nothing where some access is of another kind.
  std::optional<ShortRows> read() {
    if (!find_length()) return std::nullopt;
    for (const ExprId id : reachable(pool_, roots_of(form_.kernel)))
      if (!see(id)) return std::nullopt;
    if (std::ranges::none_of(way_.tiles, [](const ShortRows::Tile& t) { return !t.beside; })) return std::nullopt;
    const bool alone = std::ranges::none_of(way_.tiles, &ShortRows::Tile::beside);
    if (alone && way_.length > kLongestAlone) return std::nullopt;
    if (!see_outputs() || is_taken_by_vectors() || !some_row_begins_within_a_sector()) return std::nullopt;
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
    if (!length || *length < 2 || *length > kLongest) return false;
    std::ranges::sort(along);
    along.erase(std::ranges::unique(along).begin(), along.end());
    along_ = std::move(along);
    way_.length = way_.piece = static_cast<int>(*length);
    while (way_.piece % 2 == 0) way_.piece /= 2;
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
    if (here.size() > 1 || has_guard || !is_word(n.type) || bits(n.dtype) < 8 || bits(n.dtype) > 32) return false;
    const IndexExpr at = position_of(graph_, pool_, id);
    ShortRows::Tile tile{.value = n.source, .dtype = n.dtype, .type = n.type};
    if (!depends_on_rows(id)) {
      const auto first = simplify(at - IndexExpr::axis(here[0]), pool_.bounds()).as_constant();
      if (!first) return false;
      tile.beside = true, tile.first = *first;
    } else if (!is_of_rows(at, here[0])) {
      return false;
    }
    const auto known = std::ranges::find(way_.tiles, tile);
    way_.tile_of[id] = static_cast<std::size_t>(known - way_.tiles.begin());
    if (known == way_.tiles.end()) way_.tiles.push_back(tile);
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
        while (mine < taken.size() && (taken[mine] || way_.tiles[mine].beside || way_.tiles[mine].type != type)) ++mine;
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

  // Lanes take such rows by a vector each (row_layout): what a warp asks for has no gaps.
  bool is_taken_by_vectors() const {
    int widest = 8;
    for (const ShortRows::Tile& tile : way_.tiles) widest = std::max(widest, tile.beside ? 0 : bits(tile.dtype));
    for (std::size_t i = 0; i < way_.stored.size(); ++i)
      if (way_.stored[i] != ShortRows::kNoTile) widest = std::max(widest, bits(form_.kernel.outputs[i].type.dtype));
    return way_.piece == 1 && way_.length <= kVectorsOfShortRow * elements_of_vector(widest);
  }

  bool some_row_begins_within_a_sector() const {
    const auto within = [&](DType dtype) { return way_.length * bits(dtype) % (8 * kSector) != 0; };
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
  return once ? kMostTurnsAlone : kMostTurns;
}

// Equal distances between the places where the lanes of a piece begin, so that those of a warp are in different banks,
// and none has more than it must.
bool divide_evenly(ShortRows& way, int most_turns) {
  const int lanes = way.lanes_of_piece;
  int best = 0;
  way.turns = most_turns + 1;
  const int furthest = lanes == 1 ? 1 : (way.piece - 1) / (lanes - 1);
  for (int step = 1; step <= furthest; ++step) {
    const int last = way.piece - (lanes - 1) * step, turns = lanes == 1 ? last : std::max(step, last);
    if (turns >= way.turns || (lanes > 1 && turns - std::min(step, last) > kMostUneven)) continue;
    std::uint32_t banks = 0;
    for (int lane = 0; lane < kWarp; ++lane) banks |= 1u << ((lane / lanes * way.piece + lane % lanes * step) % kWarp);
    if (banks != ~0u) continue;
    best = step, way.turns = turns;
  }
  way.step = best;
  return best != 0;
}

// Places at any distances. As pieces are odd, a warp's lanes are in different banks where those of one piece begin at
// unlike multiples of 32 / lanes, as they are in 32 banks.
class UnevenPlaces {
 public:
  UnevenPlaces(int piece, int lanes, int most)
      : piece_(piece), lanes_(lanes), unit_(kWarp / lanes), most_(most), failed_((1u << lanes) * (piece / unit_ + 1)) {}

  // None where no lane would have at most so many elements.
  std::vector<int> find() { return goes_on_from(0, 1) ? places_ : std::vector<int>{}; }

 private:
  // From the lane that begins at `place * unit_`; `banks`: those taken.
  bool goes_on_from(int place, unsigned banks) {
    const std::size_t here = static_cast<std::size_t>(place) << lanes_ | banks;
    if (failed_[here]) return false;
    places_.push_back(place * unit_);
    const int furthest = place * unit_ + most_;
    if (banks == (1u << lanes_) - 1 && furthest >= piece_) {
      places_.push_back(piece_);
      return true;
    }
    for (int next = std::min(furthest, piece_ - 1) / unit_; next > place; --next)
      if ((banks >> next % lanes_ & 1) == 0 && goes_on_from(next, banks | 1u << next % lanes_)) return true;
    places_.pop_back();
    failed_[here] = true;
    return false;
  }

  const int piece_, lanes_, unit_, most_;
  std::vector<bool> failed_;
  std::vector<int> places_;
};

bool divide_unevenly(ShortRows& way, int most_turns) {
  constexpr int kMostPlaces = 8;  // of a byte each in a word of 64 bits
  const int lanes = way.lanes_of_piece;
  if (lanes == 1 || lanes > kMostPlaces) return false;
  const int most = std::min(most_turns, static_cast<int>(kMostIdle * way.piece / lanes));
  for (way.turns = (way.piece + lanes - 1) / lanes; way.turns <= most; ++way.turns) {
    way.begins = UnevenPlaces(way.piece, lanes, way.turns).find();
    if (!way.begins.empty()) return true;
  }
  return false;
}

bool divide_piece(ShortRows& way, int most_turns) {
  if (way.lanes_of_piece != kWarp) return divide_evenly(way, most_turns) || divide_unevenly(way, most_turns);
  way.stride = kWarp, way.turns = (way.piece + kWarp - 1) / kWarp;
  return way.turns <= most_turns;
}

// Whole sectors to every block, and tiles that fit; what stands beside the rows is read for several of them.
bool place_tiles(ShortRows& way, int threads, int narrowest_bits) {
  way.rows = threads / way.lanes();
  const bool beside = std::ranges::any_of(way.tiles, &ShortRows::Tile::beside);
  if (way.rows < (beside ? kFewestBeside : 1)) return false;
  if (way.rows * way.length * narrowest_bits % (8 * kSector) != 0) return false;
  way.elements = 0;
  for (ShortRows::Tile& tile : way.tiles) {
    tile.place = way.elements;
    way.elements += tile.beside ? (way.length + 3) / 4 * 4 : way.rows * way.length;
  }
  return way.elements <= kMostElements;
}

// Few lanes a row and large blocks, where there are enough rows to leave some warps of them for every multiprocessor.
int demerits(const ShortRows& way, std::int64_t rows, const Target& target) {
  constexpr int kFewTurns = 10, kWantedThreads = 64;
  const std::int64_t warps = rows * way.lanes() / kWarp, blocks = rows / way.rows;
  int worse = std::max(0, kFewTurns - way.turns);
  if (way.lanes_of_piece == kWarp) worse += 2 * kFewTurns;
  if (warps < 4 * target.multiprocessors) worse += way.turns / 4;
  if (blocks < target.multiprocessors) worse += way.threads() / kWarp;
  if (way.elements > kWantedElements) worse += 16;
  if (way.threads() > kWantedThreads) worse += 4;
  return 1024 * worse + 32 * way.lanes() + kMostThreads / way.threads();
}

}  // namespace

int ShortRows::least_turns() const {
  if (stride > 1) return piece / stride;
  if (lanes_of_piece == 1) return turns;
  int least = std::min(step, piece - (lanes_of_piece - 1) * step);
  for (std::size_t i = 1; i < begins.size(); ++i)
    least = i == 1 ? begins[1] : std::min(least, begins[i] - begins[i - 1]);
  return least;
}

std::vector<ShortRows> short_rows(const RowForm& form, const Graph& graph, const Target& target) {
  const std::int64_t rows = value_at_hint(point_count(form.kernel.pool, form.rows), form.kernel.pool.bounds().symbols);
  if (rows < kFewestRows) return {};
  Reader reader(form, graph);
  const auto read = reader.read();
  if (!read) return {};
  const int code = code_of_row(form, graph);  // loops are unrolled
  const int most = most_turns(form);
  std::vector<std::pair<int, ShortRows>> ways;
  for (const int lanes : {1, 2, 4, 8, kWarp})
    for (int threads = kWarp; threads <= kMostThreads; threads *= 2) {
      ShortRows way = *read;
      way.lanes_of_piece = lanes;
      if (way.lanes() > kWarp || threads < way.lanes() || !divide_piece(way, most)) continue;
      if (way.turns * code > kMostUnrolled) continue;
      if (!place_tiles(way, threads, reader.narrowest_bits())) continue;
      ways.emplace_back(demerits(way, rows, target), std::move(way));
    }
  std::ranges::stable_sort(ways, {}, [](const auto& way) { return way.first; });
  std::vector<ShortRows> result;
  for (auto& way : ways) result.push_back(std::move(way.second));
  return result;
}

std::string name_of(const ShortRows& way) {
  return fmt::format("{} rows through shared memory, {} threads each", way.rows, way.lanes());
}

}  // namespace fusec
