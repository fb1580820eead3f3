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
constexpr int kMostUneven = 12;                              // elements that some lanes have and others have not
constexpr int kMostElements = 12 * 1024;                     // of shared memory: what every kernel may have
constexpr int kWantedElements = 6 * 1024;                    // with which several blocks are on a multiprocessor
constexpr int kFewestBeside = 8;                             // rows of a block
constexpr int kMostThreads = 512;

bool is_word(ScalarType type) {
  return type == ScalarType::kFloat32 || type == ScalarType::kInt32;
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
    if (!see_outputs() || !some_row_begins_within_a_sector()) return std::nullopt;
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

// Where the lanes of a piece begin, so that those of a warp are in different banks, and none has more than it must.
bool divide_piece(ShortRows& way) {
  const int lanes = way.lanes_of_piece;
  if (lanes == kWarp) {
    way.stride = kWarp, way.turns = (way.piece + kWarp - 1) / kWarp;
    return way.turns <= kMostTurns;
  }
  int best = 0;
  way.turns = kMostTurns + 1;
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

std::vector<ShortRows> short_rows(const RowForm& form, const Graph& graph, const Target& target) {
  const std::int64_t rows = value_at_hint(point_count(form.kernel.pool, form.rows), form.kernel.pool.bounds().symbols);
  if (rows < kFewestRows) return {};
  Reader reader(form, graph);
  const auto read = reader.read();
  if (!read) return {};
  const int code = code_of_row(form, graph);  // loops are unrolled
  std::vector<std::pair<int, ShortRows>> ways;
  for (const int lanes : {1, 2, 4, 8, kWarp})
    for (int threads = kWarp; threads <= kMostThreads; threads *= 2) {
      ShortRows way = *read;
      way.lanes_of_piece = lanes;
      if (way.lanes() > kWarp || threads < way.lanes() || !divide_piece(way)) continue;
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
