#include "codegen/transpose/transpose_tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "analysis/kernel/loads.h"
#include "codegen/access/access_samples.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"
#include "schedule/layout/memory_access.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kMostTileWords = 11 * 1024;  // of shared memory: what every device gives without being asked
constexpr int kWantedWords = 2 * 1024;     // of a tile: two accesses of 16 bytes on their way in each thread
constexpr std::size_t kMostAlong = 2;      // axes along which loads that are staged run

bool holds_load(const ExprPool& pool, ExprId root) {
  return std::ranges::any_of(reachable(pool, std::vector<ExprId>{root}),
                             [&](ExprId id) { return pool[id].op == ExprOp::kLoad; });
}

class TransposeTilesPlanner {
 public:
  TransposeTilesPlanner(const Kernel& kernel, const Graph& graph)
      : kernel_(kernel),
        graph_(graph),
        pool_(kernel.pool),
        axes_(kernel.outputs[0].axes),
        dependences_(dependences(kernel.pool)) {}

  std::optional<TransposeTiles> run() {
    if (axes_.size() < 2) return std::nullopt;
    tiles_.stored = axes_.back();
    tiles_.tiled.push_back({.axis = tiles_.stored, .extent = 1});
    find_loads();
    if (tiles_.loads.empty() || !runs_along_stored_axis() || !stores_whole_bytes()) return std::nullopt;
    while (!lay_out()) {
      tiles_.loads.pop_back();
      if (tiles_.loads.empty()) return std::nullopt;
    }
    // Blocks of few elements are dearer than lines that are read in parts.
    constexpr int kFewest = 256, kManyPoints = 1 << 13;
    tiles_.few_points = points(0) < kFewest && value_at_hint(point_count(pool_, axes_), graph_.symbols) >= kManyPoints;
    return std::move(tiles_);
  }

 private:
  IndexExpr position_of(ExprId load) const { return fusec::position_of(graph_, pool_, load); }
  IndexExpr position_of(const KernelOutput& output) const {
    return simplify(flat_index(output.type.shape, output.index), pool_.bounds());
  }
  std::optional<std::int64_t> step(const IndexExpr& position, std::uint32_t axis) const {
    return coefficient_of(position, {Variable::Kind::kAxis, axis});
  }
  bool depends(const IndexExpr& position, std::uint32_t axis) const {
    return mentions(position, {Variable::Kind::kAxis, axis});
  }

  // Every result's neighbours lie along the last axis; what the widest and the narrowest element there has.
  bool runs_along_stored_axis() {
    const auto see = [&](DType dtype) {
      widest_ = std::max(widest_, bits(dtype));
      narrowest_ = std::min(narrowest_, bits(dtype));
    };
    for (const KernelOutput& output : kernel_.outputs) {
      if (step(position_of(output), tiles_.stored) != 1) return false;
      see(output.type.dtype);
    }
    for (const ExprId id : reachable(pool_, roots_of(kernel_)))
      if (pool_[id].op == ExprOp::kLoad && depends(position_of(id), tiles_.stored)) see(pool_[id].dtype);
    return true;
  }

  // Half-byte elements are stored in pairs at least.
  bool stores_whole_bytes() const {
    return std::ranges::all_of(kernel_.outputs, [&](const KernelOutput& output) {
      return bits(output.type.dtype) >= 8 || aligned_width(position_of(output), tiles_.stored, 2) == 2;
    });
  }

  // The axis that the load's neighbours lie along, where that is not the one that is stored.
  std::optional<std::uint32_t> other_direction(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op != ExprOp::kLoad) return std::nullopt;
    if (n.args[0] != kNoExpr && holds_load(pool_, n.args[0])) return std::nullopt;
    const IndexExpr position = position_of(id);
    // Whether an element is there must be known where it is read, for all elements that take it.
    if (n.args[0] != kNoExpr)
      for (const std::uint32_t a : dependences_[n.args[0]])
        if (!depends(position, a)) return std::nullopt;
    for (const Variable v : variables_of(position))
      if (v.kind == Variable::Kind::kValue) return std::nullopt;
    if (!depends(position, tiles_.stored) || step(position, tiles_.stored) == 1) return std::nullopt;
    for (std::size_t i = axes_.size() - 1; i-- > 0;)
      if (step(position, axes_[i]) == 1) return axes_[i];
    return nearly_other_direction(id, position);
  }

  // The axis along which neighbours lie close to one another, rolled, reflected, backwards or in steps, where those
  // along the stored axis lie apart.
  std::optional<std::uint32_t> nearly_other_direction(ExprId id, const IndexExpr& position) {
    if (!samples_) samples_.emplace(kernel_, graph_);
    const auto mostly = [&](std::uint32_t axis, auto holds) {
      const std::vector<std::int64_t> distances = samples_->distances(id, axis);
      return !distances.empty() && 4 * std::ranges::count_if(distances, holds) >= 3 * std::ssize(distances);
    };
    constexpr std::int64_t kNear = 2, kSectorBits = 256;
    const std::int64_t size = bits(pool_[id].dtype);
    if (!mostly(tiles_.stored, [&](std::int64_t d) { return d * size >= kSectorBits; })) return std::nullopt;
    for (std::size_t i = axes_.size() - 1; i-- > 0;)
      if (depends(position, axes_[i]) && mostly(axes_[i], [&](std::int64_t d) { return d <= kNear; })) return axes_[i];
    return std::nullopt;
  }

  void find_loads() {
    for (const ExprId id : reachable(pool_, roots_of(kernel_))) {
      const auto along = other_direction(id);
      if (!along) continue;
      auto at = std::ranges::find(tiles_.tiled, *along, &TiledAxis::axis);
      if (at == tiles_.tiled.end()) {
        if (tiles_.tiled.size() > kMostAlong) continue;
        at = tiles_.tiled.insert(at, {.axis = *along, .extent = 1});
      }
      tiles_.loads.push_back({.load = id,
                              .along = static_cast<std::size_t>(at - tiles_.tiled.begin()),
                              .others = {},
                              .linear = step(position_of(id), *along) == 1,
                              .bits = bits(pool_[id].dtype)});
    }
    for (StagedLoad& load : tiles_.loads)
      for (std::size_t i = 1; i < tiles_.tiled.size(); ++i)
        if (i != load.along && depends(position_of(load.load), tiles_.tiled[i].axis)) load.others.push_back(i);
  }

  // An extent that needs no more than the axis has, in accesses, and in `lanes` of them where there are as many.
  int capped(std::uint32_t axis, int extent, int access, int lanes) const {
    const std::int64_t most = range_of(pool_.extent(axis), pool_.bounds()).max;
    const int granule = most > access * lanes ? access * lanes : access;
    return static_cast<int>(std::min<std::int64_t>(extent, (most + granule - 1) / granule * granule));
  }

  // Elements of an access along an axis, the widest that alignment allows.
  int aligned_width(const IndexExpr& position, std::uint32_t axis, int width) const {
    const IndexExpr rest = position - IndexExpr::axis(axis);
    while (width > 1 && !(proves_multiple_of(rest, width, pool_.bounds()) &&
                          proves_multiple_of(pool_.extent(axis), width, pool_.bounds())))
      width /= 2;
    return width;
  }

  // Widths, extents of tiles and the places of words; false where shared memory does not hold them.
  bool lay_out() {
    tiles_.vector = 128 / widest_;
    for (const KernelOutput& output : kernel_.outputs)
      tiles_.vector = aligned_width(position_of(output), tiles_.stored, tiles_.vector);
    // Less than a word is stored one by one: neighbouring elements had better be neighbouring threads'.
    for (const KernelOutput& output : kernel_.outputs)
      if (tiles_.vector * bits(output.type.dtype) < 32) tiles_.vector = writes_half_bytes(kernel_) ? 2 : 1;
    const int packed = tiles_.vector >= 8 ? tiles_.vector / 4 : 1;
    tiles_.unit = tiles_.vector / packed;
    for (StagedLoad& load : tiles_.loads) {
      const std::uint32_t along = tiles_.tiled[load.along].axis;
      load.width = aligned_width(position_of(load.load), along, 128 / load.bits);
      if (load.width * load.bits < 32) load.width = load.bits == 4 ? std::min(load.width, 2) : 1;
      if (pool_[load.load].args[0] != kNoExpr || !load.linear) load.width = 1;
      load.packed = packed;
      load.planes = std::max(1, load.bits / 32);
    }
    choose_extents();
    tiles_.items = {.fast = tiles_.tiled[0].extent / tiles_.vector, .rest = points(1)};
    const bool in_fours = tiles_.items.rest % tiles_.unit == 0;
    tiles_.items.lanes = lanes_for(tiles_.items.fast, in_fours ? 32 / tiles_.unit : 32);
    tiles_.words = 0;
    tiles_.conflicts = 0;
    for (StagedLoad& load : tiles_.loads) {
      const int line = tiles_.tiled[load.along].extent;
      load.items = {.fast = line / load.width, .rest = tiles_.tiled[0].extent / load.packed * others_of(load)};
      load.items.lanes = lanes_for(load.items.fast, load.width <= 4 ? 32 / load.width : 8);
      tiles_.conflicts += place_words(load);
      load.start = tiles_.words;
      tiles_.words += load.words;
    }
    return tiles_.words <= kMostTileWords;
  }

  static int lanes_for(int fast, int wanted) { return fast % wanted == 0 ? wanted : fast; }

  // Points of a tile along the tiled axes from `first` on.
  int points(std::size_t first) const {
    int count = 1;
    for (std::size_t i = first; i < tiles_.tiled.size(); ++i) count *= tiles_.tiled[i].extent;
    return count;
  }
  int others_of(const StagedLoad& load) const {
    int count = 1;
    for (const std::size_t i : load.others) count *= tiles_.tiled[i].extent;
    return count;
  }
  int words_without_gaps() const {
    int words = 0;
    for (const StagedLoad& load : tiles_.loads)
      words += tiles_.tiled[0].extent / load.packed * tiles_.tiled[load.along].extent * others_of(load) * load.planes;
    return words;
  }

  void set_extent(std::size_t i, int extent) {
    int access = i == 0 ? tiles_.vector : 1;
    for (const StagedLoad& load : tiles_.loads)
      if (load.along == i) access = std::max(access, load.width);
    tiles_.tiled[i].extent = capped(tiles_.tiled[i].axis, extent, access, i == 0 ? 32 / tiles_.unit : 8);
  }

  // Lines of memory of 128 bytes on both sides, of 32 bytes where loads run along several axes; more of them while the
  // tile is small.
  void choose_extents() {
    const int lines = tiles_.tiled.size() > 2 ? 256 : 1024;  // bits
    set_extent(0, 32 / tiles_.unit * tiles_.vector);
    for (std::size_t i = 1; i < tiles_.tiled.size(); ++i) {
      int extent = 8;
      for (const StagedLoad& load : tiles_.loads)
        if (load.along == i) extent = std::max(extent, lines / load.bits);
      set_extent(i, extent);
    }
    for (int iteration = 0; iteration < 12; ++iteration) {
      const std::size_t i = iteration < 2 ? 1 : iteration % tiles_.tiled.size();
      const int before = tiles_.tiled[i].extent;
      if (2 * words_without_gaps() > kWantedWords) break;
      set_extent(i, 2 * before);
    }
    while (words_without_gaps() > kMostTileWords * 3 / 5) {
      // Shorter lines, the stored ones first, but none below a sector.
      const auto longest = std::ranges::find_if(
          tiles_.tiled, [&](const TiledAxis& t) { return t.extent * narrowest_ >= 512 && t.extent > tiles_.vector; });
      if (longest == tiles_.tiled.end()) break;
      set_extent(static_cast<std::size_t>(longest - tiles_.tiled.begin()), longest->extent / 2);
    }
  }

  // Tries gaps between lines, units and others, and orders of a load's items, until no two threads of a warp want
  // different words of one bank.
  int place_words(StagedLoad& load) const {
    StagedLoad best = load;
    int fewest = -1;
    const ItemOrder order = load.items;
    constexpr std::array<std::pair<int, int>, 9> kSpreads = {
        {{32, 0}, {32, 4}, {32, 8}, {32, 1}, {32, 2}, {32, 16}, {8, 8}, {8, 4}, {4, 1}}};
    for (const int lanes : {order.lanes, 8, 16, 32, 4, 2, 3, 1, order.fast})
      for (const auto& [every, spread] : kSpreads) {
        const bool whole_sectors = lanes == order.fast || lanes * load.width * load.bits % 256 == 0;
        if (order.fast % lanes != 0 || !whole_sectors || load.width > every) continue;
        load.items.lanes = lanes;
        load.every = every;
        load.spread = spread;
        find_gaps(load, best, fewest);
        if (fewest == 0) {
          load = best;
          return 0;
        }
      }
    load.every = 32;
    load.spread = 0;
    // The whole of each line by a warp, or of several by one, some of whose lanes are idle.
    const int padded = order.fast > kWarpLanes ? (order.fast + kWarpLanes - 1) / kWarpLanes * kWarpLanes
                                               : static_cast<int>(std::bit_ceil(static_cast<unsigned>(order.fast)));
    if (padded != order.fast) {
      load.items = {.fast = padded, .lanes = padded, .rest = order.rest, .real = order.fast};
      find_gaps(load, best, fewest);
    }
    load.items = order;
    if (fewest > 0) find_gaps_between_lines(load, best, fewest);
    load = best;
    return fewest;
  }

  // Lines close to one another, but for a gap behind some of them.
  void find_gaps_between_lines(StagedLoad& load, StagedLoad& best, int& fewest) const {
    const int length = tiles_.tiled[load.along].extent, units = tiles_.tiled[0].extent / tiles_.vector;
    for (const int lanes : {load.items.lanes, load.items.fast})
      for (const int lines : {2, 4, 8, 16, 32, 64})
        for (const int gap : {1, 2, 4, 8, 16, 3, 5})
          for (int more = 0; more < 4; ++more) {
            if (lines % tiles_.unit != 0) continue;
            load.items.lanes = lanes;
            load.lines = lines;
            load.gap = gap;
            load.pitch = length + more;
            load.unit = tiles_.unit * load.pitch;
            load.other = units * load.unit + units * tiles_.unit / lines * gap + gap;
            load.plane = load.other * others_of(load);
            load.words = (load.planes * load.plane + 3) / 4 * 4;
            const int conflicts = conflicts_of(load, fewest);
            if (conflicts >= fewest) continue;
            fewest = conflicts;
            best = load;
            if (fewest == 0) return;
          }
  }

  void find_gaps(StagedLoad& load, StagedLoad& best, int& fewest) const {
    constexpr int kBanks = 32;
    const int line = tiles_.tiled[load.along].extent, units = tiles_.tiled[0].extent / tiles_.vector;
    const int length = word_at(load, tiles_.unit, 0, line - 1, 0) + 1;
    const bool others = !load.others.empty();
    for (const int between_others : {0, 1, 2, 4, 8, 16, 3, 5, 12, 20}) {
      if (between_others > 0 && !others) break;
      const int step = tiles_.items.lanes == 32 && !others ? 1 : 4;
      for (int between_units = 0; between_units < (tiles_.unit == 1 ? 1 : kBanks); between_units += step)
        for (int gap = 0; gap < (others ? kBanks / 2 : kBanks); ++gap) {
          load.pitch = length + gap;
          load.unit = tiles_.unit * load.pitch + between_units;
          load.other = units * load.unit + between_others;
          load.plane = load.other * others_of(load);
          load.words = (load.planes * load.plane + 3) / 4 * 4;
          const int conflicts = conflicts_of(load, fewest);
          if (fewest >= 0 && conflicts >= fewest) continue;
          fewest = conflicts;
          best = load;
          if (fewest == 0) return;
        }
    }
  }

  // How often a warp's threads want different words of one bank, in its first warps; no more than `enough` is counted.
  int conflicts_of(const StagedLoad& load, int enough) const {
    constexpr int kWarps = 8;
    int conflicts = 0;
    const int lines = tiles_.tiled[0].extent / load.packed;
    for (int warp = 0; warp < kWarps; ++warp) {
      for (int e = 0; e < load.width; ++e)
        conflicts += conflicts_of_warp(load.items, warp, [&](int fast, int rest) {
          return word_at(load, tiles_.unit, rest % lines, fast * load.width, rest / lines) + e;
        });
      for (int e = 0; e < tiles_.unit; ++e)
        conflicts += conflicts_of_warp(tiles_.items, warp, [&](int fast, int rest) {
          int place = 0, other = 0;
          std::array<int, kMostAlong + 1> at{};
          for (std::size_t i = 1; i < tiles_.tiled.size(); ++i) {
            at[i] = rest % tiles_.tiled[i].extent;
            rest /= tiles_.tiled[i].extent;
          }
          place = at[load.along];
          for (const std::size_t i : load.others) other = other * tiles_.tiled[i].extent + at[i];
          return word_at(load, tiles_.unit, fast * tiles_.unit + e, place, other);
        });
      if (enough >= 0 && conflicts >= enough) break;
    }
    return conflicts;
  }

  template <class WordOf>
  static int conflicts_of_warp(const ItemOrder& order, int warp, WordOf word_of) {
    std::array<std::int64_t, kWarpLanes> addresses;
    addresses.fill(kIdleLane);
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const int item = warp * kWarpLanes + lane;
      if (item >= order.count()) break;
      const int rest = item / order.lanes % order.rest;
      const int fast = item / (order.lanes * order.rest) * order.lanes + item % order.lanes;
      if (order.real > 0 && fast >= order.real) continue;
      addresses[static_cast<std::size_t>(lane)] = 4 * std::int64_t{word_of(fast, rest)};
    }
    return count_bank_conflicts(addresses, 4);
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const ExprPool& pool_;
  const std::vector<std::uint32_t>& axes_;
  const std::vector<std::vector<std::uint32_t>> dependences_;
  std::optional<AccessSamples> samples_;  // once they are needed
  TransposeTiles tiles_{.stored = 0, .tiled = {}, .items = {}, .loads = {}};
  int widest_ = 4, narrowest_ = 64;
};

}  // namespace

std::optional<TransposeTiles> plan_transpose(const Kernel& kernel, const Graph& graph) {
  return TransposeTilesPlanner(kernel, graph).run();
}

int word_at(const StagedLoad& load, int unit_words, int line, int place, int other) {
  const int gaps = load.lines > 0 ? line / load.lines * load.gap : 0;
  return other * load.other + line / unit_words * load.unit + line % unit_words * load.pitch + place +
         place / load.every * load.spread + gaps;
}

}  // namespace fusec
