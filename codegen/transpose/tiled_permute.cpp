#include "codegen/transpose/tiled_permute.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "analysis/kernel/loads.h"
#include "codegen/access/access_samples.h"
#include "codegen/transpose/tile_bank_conflicts.h"
#include "ir/type.h"
#include "schedule/layout/memory_access.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kMostPermuteBytes = 52 * 1024;  // of shared memory: three such blocks have any multiprocessor
constexpr std::size_t kMostLoads = 4;
constexpr std::int64_t kFewestPermutePoints = 4096;

bool has(const std::vector<std::size_t>& axes, std::size_t i) {
  return std::ranges::find(axes, i) != axes.end();
}

class TiledPermutePlanner {
 public:
  TiledPermutePlanner(const Kernel& kernel, const Graph& graph, const Target& target)
      : kernel_(kernel),
        pool_(kernel.pool),
        graph_(graph),
        target_(target),
        result_(kernel.outputs[0]),
        axes_(kernel.outputs[0].axes),
        samples_(kernel, graph) {}

  std::optional<TiledPermute> run() {
    if (kernel_.outputs.size() != 1 || bits(result_.type.dtype) < 8 || axes_.size() < 2) return std::nullopt;
    if (samples_.points() < kFewestPermutePoints) return std::nullopt;
    stored_.position = simplify(flat_index(result_.type.shape, result_.index), pool_.bounds());
    stored_.bits = bits(result_.type.dtype);
    if (!find_loads()) return std::nullopt;
    find_axes();
    if (order_of(stored_).empty()) return std::nullopt;
    std::vector<Candidate> candidates = ranked_tiles();
    std::optional<TiledPermute> best;
    constexpr std::size_t kLaidOut = 5;
    for (std::size_t i = 0; i < std::min(candidates.size(), kLaidOut); ++i) {
      if (best && candidates[i].cost * 0.85 >= best->time) break;
      TiledPermute tiles = laid_out(candidates[i]);
      if (tiles.bytes > kMostPermuteBytes || (best && tiles.time >= best->time)) continue;
      best = std::move(tiles);
    }
    if (!best) return std::nullopt;
    candidates.resize(std::min(candidates.size(), kLaidOut));
    return stored_by_sector_where_better(*best, candidates);
  }

 private:
  // What of a tensor the kernel reads or writes.
  struct TensorAccess {
    ExprId load = kNoExpr;
    IndexExpr position;
    int bits = 8;
    std::vector<std::int64_t> strides{};  // of the axes that may be the box's, whichever way
    std::vector<IndexExpr> steps{};       // the same as a launch has them
    std::vector<bool> backwards{};        // which way
    int bytes() const { return bits / 8; }
  };
  struct Axis {
    std::uint32_t axis;
    std::int64_t extent;  // at hint
    bool known;           // not a symbol's
  };
  using TileExtents = std::vector<std::int64_t>;  // elements of each of `tile_axes_`
  struct Candidate {
    TileExtents extents;
    double cost;
  };

  // Loads that go through the box: of tensors, then of tables that are small enough to stay in the first cache. What
  // else is loaded is of other tables, or lies as the result does.
  bool find_loads() {
    std::vector<TensorAccess> tables;
    for (const ExprId id : reachable(pool_, roots_of(kernel_))) {
      const ExprNode& n = pool_[id];
      if (n.op != ExprOp::kLoad) continue;
      const TensorAccess side{.load = id, .position = position_of(graph_, pool_, id), .bits = bits(n.dtype)};
      const bool plain = n.args[0] == kNoExpr && !by_values(side.position) && side.bits >= 8;
      if (samples_.is_small_table(id)) {
        if (plain && in_equal_steps(side.position)) tables.push_back(side);
        continue;
      }
      if (!plain) return false;
      if (side.position == stored_.position) {
        if (elements_of_word(stored_.bits) > 1) return false;
        unstaged_sectors_ += side.bits / 256.0;
        continue;
      }
      loads_.push_back(side);
    }
    tensors_ = loads_.size();
    loads_.insert(loads_.end(), tables.begin(), tables.end());
    return tensors_ > 0 && tensors_ <= kMostLoads && loads_.size() <= 2 * kMostLoads;
  }

  // Along some axis, and nowhere otherwise than in such.
  bool in_equal_steps(const IndexExpr& position) const {
    bool moves = false;
    for (const std::uint32_t axis : axes_) {
      const auto step = step_along(position, axis, pool_.bounds());
      if (!step) return false;
      moves = moves || !step->is(0);
    }
    return moves;
  }

  // Those along which every tensor goes in equal steps.
  void find_axes() {
    for (const std::uint32_t axis : axes_) {
      const auto stored = step_along(stored_.position, axis, pool_.bounds());
      std::vector<std::optional<IndexExpr>> steps;
      for (const TensorAccess& load : loads_) steps.push_back(step_along(load.position, axis, pool_.bounds()));
      if (!stored || samples_.hint(*stored) <= 0 ||
          !std::ranges::all_of(steps, [](const auto& s) { return s.has_value(); }))
        continue;
      const auto known = pool_.extent(axis).as_constant();
      tile_axes_.push_back({.axis = axis, .extent = samples_.hint(pool_.extent(axis)), .known = known.has_value()});
      add_step(stored_, *stored);
      for (std::size_t i = 0; i < loads_.size(); ++i) add_step(loads_[i], *steps[i]);
    }
  }
  void add_step(TensorAccess& side, const IndexExpr& step) const {
    const bool backwards = samples_.hint(step) < 0;
    side.backwards.push_back(backwards);
    side.steps.push_back(backwards ? step * -1 : step);
    side.strides.push_back(samples_.hint(side.steps.back()));
  }

  // The axes that one stretch of the tensor could go along, were they whole; the fastest first. What is read may have
  // some between that nobody wants (a part of the last axis).
  std::vector<std::size_t> order_of(const TensorAccess& side) const {
    std::vector<std::size_t> order(tile_axes_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t i) { return side.strides[i] == 0 || !side.steps[i].is_constant(); });
    std::ranges::sort(order, {}, [&](std::size_t i) { return side.strides[i]; });
    std::int64_t span = 1;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int64_t stride = side.strides[order[i]];
      if (side.load == kNoExpr ? stride != span : i == 0 ? stride != 1 : stride < span || 2 * stride > 3 * span) {
        order.resize(i);
        break;
      }
      span += (tile_axes_[order[i]].extent - 1) * stride;
      if (!tile_axes_[order[i]].known) {
        order.resize(i + 1);
        break;
      }
    }
    return order;
  }

  // So many elements of each axis as make stretches of that many bytes: the last one in equal parts, or in parts that
  // are whole sectors together with what is inside of them.
  std::vector<TileExtents> parts_for(const TensorAccess& side, std::int64_t bytes) const {
    TileExtents extents(tile_axes_.size(), 1);
    std::int64_t inside = side.bytes();
    for (const std::size_t i : order_of(side)) {
      const std::int64_t extent = tile_axes_[i].extent, wanted = ceil_quotient(bytes, inside);
      if (wanted >= extent && tile_axes_[i].known) {
        extents[i] = extent;
        inside *= extent;
        if (inside >= bytes) return {extents};
        continue;
      }
      std::vector<TileExtents> parts;
      extents[i] = std::min(wanted, extent);
      extents[i] = ceil_quotient(extent, ceil_quotient(extent, extents[i]));
      parts.push_back(extents);
      const std::int64_t sectors = kSectorBytes / std::gcd<std::int64_t>(inside, kSectorBytes);
      extents[i] = ceil_quotient(std::min(wanted, extent), sectors) * sectors;
      if (extents[i] < extent && extents != parts[0]) parts.push_back(extents);
      return parts;
    }
    return {extents};
  }

  std::vector<Candidate> ranked_tiles() const {
    std::vector<Candidate> candidates;
    const auto widths = {std::int64_t{64},   std::int64_t{128},  std::int64_t{256},  std::int64_t{512},
                         std::int64_t{1024}, std::int64_t{2048}, std::int64_t{4096}, std::int64_t{8192}};
    for (const std::int64_t of_result : widths)
      for (const TileExtents& stored : parts_for(stored_, of_result))
        for (const std::int64_t of_load : widths)
          for (const TileExtents& read : parts_for(loads_[0], of_load)) {
            TileExtents extents = larger(stored, read);
            for (std::size_t l = 1; l < tensors_; ++l) extents = larger(extents, parts_for(loads_[l], of_load)[0]);
            if (std::ranges::find(candidates, extents, &Candidate::extents) == candidates.end() && fits(extents))
              candidates.push_back({extents, cost_of(extents)});
          }
    std::ranges::stable_sort(candidates, {}, &Candidate::cost);
    return candidates;
  }

  static TileExtents larger(TileExtents a, const TileExtents& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
    return a;
  }

  bool fits(const TileExtents& extents) const {
    std::int64_t bytes = 0;
    for (const TensorAccess& load : loads_) {
      std::int64_t count = load.bytes();
      for (std::size_t i = 0; i < extents.size(); ++i)
        if (load.strides[i] > 0) count *= extents[i];
      bytes += count;
    }
    return bytes <= kMostPermuteBytes * 9 / 10;
  }

  // At least: sectors for a point, a little more where blocks are too few for all multiprocessors or have few points.
  double cost_of(const TileExtents& extents) const {
    double cost = sectors_of(extents), blocks = static_cast<double>(samples_.points()), points = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      blocks /= static_cast<double>(tile_axes_[i].extent);
      blocks *= static_cast<double>(ceil_quotient(tile_axes_[i].extent, extents[i]));
      points *= static_cast<double>(extents[i]);
    }
    const double wanted = target_.multiprocessors;
    if (blocks < wanted) cost *= 1 + 0.15 * (1 - blocks / wanted);
    constexpr double kWantedPoints = 512;  // what else a block does is little then
    if (points < kWantedPoints) cost *= 1 + 0.15 * (1 - points / kWantedPoints);
    return cost;
  }

  double sectors_of(const TileExtents& extents) const {
    double sectors = unstaged_sectors_ + sectors_of(stored_, extents);
    for (const TensorAccess& load : loads_) sectors += sectors_of(load, extents);
    return sectors;
  }

  // `cut`: so many of the axes that a stretch could go along are lines' all the same.
  TileLayout layout_of(const TensorAccess& side, const TileExtents& extents, std::size_t cut = 0) const {
    TileLayout layout{.run = {}, .lines = {}, .strides = side.strides, .steps = side.steps};
    for (const std::size_t i : order_of(side)) {
      layout.run.push_back(i);
      if (extents[i] < tile_axes_[i].extent) break;
    }
    layout.run.resize(layout.run.size() - std::min(cut, layout.run.size()));
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i] > 1 && side.strides[i] > 0 && !has(layout.run, i)) layout.lines.push_back(i);
    std::ranges::sort(layout.lines, {}, [&](std::size_t i) { return side.strides[i]; });
    layout.aligned = alignment_of_runs(side, layout, extents);
    return layout;
  }

  int alignment_of_runs(const TensorAccess& side, const TileLayout& layout, const TileExtents& extents) const {
    // Where the stretch begins that ends, or begins, with so many elements of its last axis.
    const auto aligned_with = [&](std::int64_t of_last) {
      const IndexExpr begin = substitute(side.position, [&](Variable v) -> std::optional<IndexExpr> {
        if (v.kind != Variable::Kind::kAxis) return std::nullopt;
        for (const std::size_t i : layout.run) {
          if (tile_axes_[i].axis != v.id) continue;
          const bool backwards = !side.backwards.empty() && side.backwards[i];
          return IndexExpr(backwards ? (i == layout.run.back() ? of_last : extents[i]) - 1 : 0);
        }
        return std::nullopt;
      });
      return fusec::alignment_of(begin, side.bits, pool_.bounds());
    };
    if (layout.run.empty()) return aligned_with(1);
    const std::size_t last = layout.run.back();
    int bytes = aligned_with(extents[last]);
    if (extents[last] == tile_axes_[last].extent && tile_axes_[last].known) return bytes;
    bytes = std::min(bytes, aligned_with(tile_axes_[last].extent));
    return std::gcd(bytes, static_cast<int>(side.strides[last] * extents[last] * side.bytes() % kSectorBytes));
  }

  // A stretch that begins anywhere touches one sector more than it fills, or two.
  double sectors_of(const TensorAccess& side, const TileExtents& extents, std::size_t cut = 0) const {
    const TileLayout layout = layout_of(side, extents, cut);
    double runs = 1, elements = 1;
    for (const std::uint32_t axis : axes_) {
      const double extent = static_cast<double>(samples_.hint(pool_.extent(axis)));
      const auto at = std::ranges::find(tile_axes_, axis, &Axis::axis);
      const auto i = static_cast<std::size_t>(at - tile_axes_.begin());
      const double parts = at == tile_axes_.end() ? extent : static_cast<double>(ceil_quotient(at->extent, extents[i]));
      if (at == tile_axes_.end() || has(layout.lines, i)) {
        runs *= extent;
      } else {
        runs *= parts;
        if (has(layout.run, i)) elements += (extent / parts - 1) * static_cast<double>(side.strides[i]);
      }
    }
    const auto bytes = static_cast<std::int64_t>(elements * side.bytes() + 0.5);
    double touched = mean_sectors_of_run(bytes, layout.aligned);
    // What of the result is less than a word is stored one by one.
    if (side.load == kNoExpr && (layout.aligned < 4 || bytes % 4 != 0)) touched += elements_of_word(side.bits) - 1;
    return runs * touched / static_cast<double>(samples_.points());
  }

  // Sectors of neighbouring lines stored by neighbouring threads, where warps then find elements in clearly more banks:
  // lines of whole stretches, or shorter ones, of boxes that ask for no more sectors.
  TiledPermute stored_by_sector_where_better(const TiledPermute& in_lines,
                                             const std::vector<Candidate>& candidates) const {
    constexpr double kFewConflicts = 0.6, kAsMany = 1.01;
    if (in_lines.conflicts < kFewConflicts) return in_lines;
    TiledPermute best = in_lines;
    const int of_sector = kSectorBytes / std::max(4, stored_.bytes());
    const auto consider = [&](const Candidate& candidate, std::size_t cut, int lanes) {
      TiledPermute other = laid_out(candidate, cut, lanes);
      other.time_in_lines = in_lines.time;
      const bool better = other.time < best.time && 2 * other.conflicts <= in_lines.conflicts;
      const bool as_busy = instructions_of_store(other) <= kAsMany * instructions_of_store(in_lines);
      if (better && as_busy && other.bytes <= kMostPermuteBytes && other.sectors <= in_lines.sectors)
        best = std::move(other);
    };
    for (const Candidate& candidate : candidates)
      for (std::size_t cut = 0; cut < std::min<std::size_t>(in_lines.stored.run.size(), 2); ++cut)
        for (const int sectors : {1, 2}) consider(candidate, cut, sectors * of_sector);
    return best;
  }

  // `cut`, `lanes`: of how the result is stored (TileLayout).
  TiledPermute laid_out(const Candidate& candidate, std::size_t cut = 0, int lanes = 0) const {
    const TileExtents& extents = candidate.extents;
    TiledPermute tiles{.axes = {}, .stored = layout_of(stored_, extents, cut), .loads = {}};
    tiles.stored.lanes = lanes;
    for (std::size_t i = 0; i < extents.size(); ++i)
      tiles.axes.push_back({.axis = tile_axes_[i].axis, .extent = static_cast<int>(extents[i])});
    choose_threads(tiles);
    const double more_sectors = cut > 0 ? sectors_of(stored_, extents, cut) - sectors_of(stored_, extents) : 0;
    tiles.sectors = sectors_of(extents) + more_sectors;
    const std::vector<TileAccess> accesses = reading_accesses(tiles, stored_.bits);
    double issued = 0, passes = 0;  // for a point
    for (const TensorAccess& side : loads_) {
      PlacedLoad placed = place_lines(side, extents, tiles, accesses);
      placed.load.start = tiles.bytes;
      tiles.bytes += bytes_of(placed.load, tiles);
      issued += placed.issued;
      passes += placed.passes;
      tiles.conflicts += placed.conflicts;
      tiles.loads.push_back(std::move(placed.load));
    }
    issued += instructions_of_store(tiles);
    tiles.time = tiles.time_in_lines = movement_time(candidate.cost + more_sectors, issued, passes);
    return tiles;
  }

  // Of a warp, for a point: quotients and a load for each element, what a word needs besides.
  double instructions_of_store(const TiledPermute& tiles) const {
    constexpr double kElement = 4, kQuotient = 3, kWord = 14, kPlaceOfWord = 10, kOfThread = 70, kOfPart = 12;
    const TileThreadMap items = items_of_store(tiles);
    const bool one_place =
        items.iterations_of_line() == 1 || tiles.stored.run.size() == 1;  // but for a multiple of the turn
    const bool once =
        items.traversal == TileThreadMap::Traversal::kLinesAtOnce && one_place && tiles.stored.aligned == kSectorBytes;
    const auto each = static_cast<double>(elements_of_word(stored_.bits));
    double word = kWord + (once ? 0 : kPlaceOfWord) + each * kElement;
    if (!once) word += each * kQuotient * static_cast<double>(tiles.stored.run.size() - 1);
    // Words of which only a part is stored are two branches of a line, an element at a time.
    const bool in_part =
        each > 1 && (tiles.stored.aligned < 4 || run_elements(tiles.stored, tiles.axes) * stored_.bytes() % 4 != 0);
    const double parts = in_part ? 2.0 * kOfPart * each * 32 * static_cast<double>(items.lines) : 0;
    return (items_of_lanes(items) * word + parts + kOfThread * tiles.threads) /
           static_cast<double>(point_count(tiles.axes)) / 32;
  }

  // With those of threads that have none.
  static double items_of_lanes(const TileThreadMap& items) {
    return static_cast<double>(items.lines * items.of_line) / items.busy;
  }

  TileThreadMap items_of_store(const TiledPermute& tiles) const {
    return thread_map_for(line_count(tiles.stored, tiles.axes),
                          line_bytes(tiles.stored, tiles.axes, stored_.bits) / std::max(4, stored_.bytes()),
                          tiles.threads, tiles.stored.lanes);
  }

  // As few instructions as possible, in blocks that have enough threads for what is under way.
  void choose_threads(TiledPermute& tiles) const {
    constexpr int kFewest = 64, kWanted = 256, kMost = 384;
    constexpr std::int64_t kBytesEach = 48;
    const double points = static_cast<double>(point_count(tiles.axes));
    const auto bytes = static_cast<std::int64_t>(points) * stored_.bytes();
    const int from =
        static_cast<int>(std::clamp<std::int64_t>(bytes / kBytesEach / kWarpLanes * kWarpLanes, kFewest, kWanted));
    double least = -1;
    for (int threads = from; threads <= kMost; threads += kWarpLanes) {
      TiledPermute other = tiles;
      other.threads = threads;
      const double instructions = instructions_of_store(other) * points;
      if (least >= 0 && instructions >= 0.98 * least) continue;
      least = instructions;
      tiles.threads = threads;
    }
  }

  // What lines lie apart at least: each with what else is in its first and its last vector.
  int slot_bytes(const PermuteLoad& load, const TiledPermute& tiles) const {
    const int element = bits(pool_[load.load].dtype) / 8, run = static_cast<int>(run_elements(load.layout, tiles.axes));
    return run * element + (load.in_vectors ? 2 * (kVectorBytes - std::min(kVectorBytes, load.layout.aligned)) : 0);
  }
  int bytes_of(const PermuteLoad& load, const TiledPermute& tiles) const {
    int bytes = slot_bytes(load, tiles) + kVectorBytes;
    for (const std::size_t i : load.layout.lines) bytes += (tiles.axes[i].extent - 1) * most_place(load, i);
    return (bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  }

  // Whatever the launch's sizes.
  static int most_place(const PermuteLoad& load, std::size_t axis) {
    const int place = load.places[axis];
    return load.place_varies(axis) ? place / kVectorBytes * kVectorBytes + kVectorBytes - 1 : place;
  }

  struct PlacedLoad {
    PermuteLoad load;
    double conflicts = 0;           // for each access
    double issued = 0, passes = 0;  // instructions of a warp and passes of shared memory, for a point
  };

  // The cheapest way to copy it: as vectors or as elements, stretches as long as they are or shorter ones, and gaps
  // between the lines.
  PlacedLoad place_lines(const TensorAccess& side, const TileExtents& extents, const TiledPermute& tiles,
                         const std::vector<TileAccess>& accesses) const {
    std::optional<PlacedLoad> best;
    double least = 0;
    const std::size_t runs = layout_of(side, extents).run.size();
    constexpr double kFewConflicts = 0.1, kBearable = 0.6;
    for (const bool in_vectors : {true, false}) {
      if (best && best->conflicts < kBearable) break;
      for (std::size_t cut = 0; cut < std::min<std::size_t>(runs, 3); ++cut) {
        PermuteLoad load = unplaced(side, layout_of(side, extents, cut));
        load.in_vectors = in_vectors;
        // The lines of a warp are neighbours in memory.
        if (cut > 0 && 10 * line_bytes(load.layout, tiles.axes, side.bits) >
                           11 * run_elements(load.layout, tiles.axes) * side.bytes())
          load.layout.from = piece_of(load);
        PlacedLoad placed = place_lines(load, tiles, accesses);
        if (bytes_of(placed.load, tiles) > kMostPermuteBytes / static_cast<int>(loads_.size())) continue;
        const double cost = movement_time(tiles.sectors, placed.issued + instructions_of_store(tiles), placed.passes);
        if (best && cost >= least) continue;
        least = cost;
        best = std::move(placed);
        if (best->conflicts < kFewConflicts) return *best;
      }
    }
    if (best) return *best;
    return place_lines(unplaced(side, layout_of(side, extents)), tiles, accesses);
  }
  static PermuteLoad unplaced(const TensorAccess& side, TileLayout layout) {
    return {.load = side.load, .layout = std::move(layout), .backwards = side.backwards, .places = {}};
  }

  PlacedLoad place_lines(const PermuteLoad& of, const TiledPermute& tiles, const std::vector<TileAccess>& reads) const {
    PlacedLoad placed{.load = of};
    const int element = bits(pool_[of.load].dtype) / 8, piece = piece_of(of);
    const std::vector<int> gaps = of.in_vectors ? std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}
                                                : std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 28};
    const std::vector<TileAccess> writes = writing_accesses(of.layout, tiles.axes, element * 8, piece);
    const int written = piece == 4 ? element : piece;  // bytes of a lane by one access
    const std::size_t lines = of.layout.lines.size();
    double fewest = -1;
    PermuteLoad load = of;
    for (std::size_t outer = 0; outer < (lines > 1 ? std::size_t{8} : 1) && fewest != 0; ++outer)
      for (std::size_t inner = 0; inner < (lines > 0 ? gaps.size() : 1) && fewest != 0; ++inner) {
        set_places(load, tiles, {gaps[inner], gaps[outer]});
        double found = conflicts_of(places_of_reads(load), reads, element);
        if (fewest >= 0 && found >= fewest) continue;
        found += conflicts_of(load.places, writes, written) * element / written;
        if (fewest >= 0 && found >= fewest) continue;
        fewest = found;
        placed.load.places = load.places;
      }
    placed.conflicts = fewest;
    constexpr double kCopied = 22, kElementCopied = 4;  // of a piece
    const TileThreadMap items =
        thread_map_for(line_count(of.layout, tiles.axes), line_bytes(of.layout, tiles.axes, element * 8) / piece,
                       tiles.threads, of.layout.lanes);
    const double copied = kCopied + (piece == 4 && element < 4 ? kElementCopied * 4 / element : 0);
    placed.issued = items_of_lanes(items) * copied / static_cast<double>(point_count(tiles.axes)) / 32;
    placed.passes = (fewest + std::max(1, element / 4) + (written < 4 ? 1 : element / 4.0)) / 32;
    return placed;
  }

  static std::vector<int> places_of_reads(const PermuteLoad& load) {
    std::vector<int> places = load.places;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (load.backwards[i]) places[i] = -places[i];
    return places;
  }

  // Bytes that a thread copies at a time: a vector, a word of smaller elements, a wider element.
  int piece_of(const PermuteLoad& load) const {
    return load.in_vectors ? kVectorBytes : std::max(4, bits(pool_[load.load].dtype) / 8);
  }

  void set_places(PermuteLoad& load, const TiledPermute& tiles, std::array<int, 2> gaps) const {
    const int element = bits(pool_[load.load].dtype) / 8, unit = load.in_vectors ? kVectorBytes : element;
    load.places.assign(tiles.axes.size(), 0);
    for (const std::size_t i : load.layout.run) load.places[i] = static_cast<int>(load.layout.strides[i]) * element;
    std::int64_t least = slot_bytes(load, tiles);
    for (std::size_t l = 0; l < load.layout.lines.size(); ++l) {
      const std::size_t i = load.layout.lines[l];
      const std::int64_t in_memory = load.layout.strides[i] * element % unit;
      const bool varies = load.in_vectors && !load.layout.steps[i].is_constant();
      const std::int64_t at = ceil_quotient(varies ? least : least - in_memory, unit) * unit + in_memory;
      load.places[i] = static_cast<int>(at + (l < gaps.size() ? unit * gaps[l] : 0));
      least += std::int64_t{most_place(load, i)} * (tiles.axes[i].extent - 1);
    }
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const Graph& graph_;
  const Target& target_;
  const KernelOutput& result_;
  const std::vector<std::uint32_t>& axes_;
  AccessSamples samples_;
  TensorAccess stored_;
  std::vector<TensorAccess> loads_;
  std::size_t tensors_ = 0;  // of them, the first ones; the others are of tables
  std::vector<Axis> tile_axes_;
  double unstaged_sectors_ = 0;  // sectors for a point of what is read where it is stored
};

}  // namespace

std::optional<TiledPermute> plan_tiled_permute(const Kernel& kernel, const Graph& graph, const Target& target) {
  return TiledPermutePlanner(kernel, graph, target).run();
}

}  // namespace fusec
