#include "codegen/schedules/box_tiles.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "analysis/loads.h"
#include "analysis/target.h"
#include "codegen/schedules/access_samples.h"
#include "codegen/schedules/box_conflicts.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kMostBoxBytes = 52 * 1024;  // of shared memory: three such blocks have any multiprocessor
constexpr std::size_t kMostLoads = 4;
constexpr std::int64_t kFewestBoxPoints = 4096;

bool has(const std::vector<std::size_t>& axes, std::size_t i) {
  return std::ranges::find(axes, i) != axes.end();
}

class BoxTilesPlanner {
 public:
  BoxTilesPlanner(const Kernel& kernel, const Graph& graph, const Target& target)
      : kernel_(kernel),
        pool_(kernel.pool),
        graph_(graph),
        target_(target),
        result_(kernel.outputs[0]),
        axes_(kernel.outputs[0].axes),
        samples_(kernel, graph) {}

  std::optional<BoxTiles> run() {
    if (kernel_.outputs.size() != 1 || bits(result_.type.dtype) < 8 || axes_.size() < 2) return std::nullopt;
    if (samples_.points() < kFewestBoxPoints) return std::nullopt;
    stored_.position = simplify(flat_index(result_.type.shape, result_.index), pool_.bounds());
    stored_.bits = bits(result_.type.dtype);
    if (!find_loads()) return std::nullopt;
    find_axes();
    if (order_of(stored_).empty()) return std::nullopt;
    std::vector<Candidate> candidates = ranked_boxes();
    std::optional<BoxTiles> best;
    constexpr std::size_t kLaidOut = 5;
    for (std::size_t i = 0; i < std::min(candidates.size(), kLaidOut); ++i) {
      if (best && candidates[i].cost * 0.85 >= best->time) break;
      BoxTiles tiles = laid_out(candidates[i]);
      if (tiles.bytes > kMostBoxBytes || (best && tiles.time >= best->time)) continue;
      best = std::move(tiles);
    }
    if (!best) return std::nullopt;
    candidates.resize(std::min(candidates.size(), kLaidOut));
    return in_sectors_where_better(*best, candidates);
  }

 private:
  // What of a tensor the kernel reads or writes.
  struct Side {
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
  using Taken = std::vector<std::int64_t>;  // elements of each of `box_axes_`
  struct Candidate {
    Taken taken;
    double cost;
  };

  // Loads that go through the box: of tensors, then of tables that are small enough to stay in the first cache. What
  // else is loaded is of other tables, or lies as the result does.
  bool find_loads() {
    std::vector<Side> tables;
    for (const ExprId id : reachable(pool_, roots_of(kernel_))) {
      const ExprNode& n = pool_[id];
      if (n.op != ExprOp::kLoad) continue;
      const Side side{.load = id, .position = position_of(graph_, pool_, id), .bits = bits(n.dtype)};
      const bool plain = n.args[0] == kNoExpr && !by_values(side.position) && side.bits >= 8;
      if (samples_.is_of_table(id)) {
        if (plain && in_equal_steps(side.position)) tables.push_back(side);
        continue;
      }
      if (!plain) return false;
      if (side.position == stored_.position) {
        if (elements_of_word(stored_.bits) > 1) return false;
        beside_ += side.bits / 256.0;
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
      for (const Side& load : loads_) steps.push_back(step_along(load.position, axis, pool_.bounds()));
      if (!stored || samples_.hint(*stored) <= 0 ||
          !std::ranges::all_of(steps, [](const auto& s) { return s.has_value(); }))
        continue;
      const auto known = pool_.extent(axis).as_constant();
      box_axes_.push_back({.axis = axis, .extent = samples_.hint(pool_.extent(axis)), .known = known.has_value()});
      add_step(stored_, *stored);
      for (std::size_t i = 0; i < loads_.size(); ++i) add_step(loads_[i], *steps[i]);
    }
  }
  void add_step(Side& side, const IndexExpr& step) const {
    const bool backwards = samples_.hint(step) < 0;
    side.backwards.push_back(backwards);
    side.steps.push_back(backwards ? step * -1 : step);
    side.strides.push_back(samples_.hint(side.steps.back()));
  }

  // The axes that one stretch of the tensor could go along, were they whole; the fastest first. What is read may have
  // some between that nobody wants (a part of the last axis).
  std::vector<std::size_t> order_of(const Side& side) const {
    std::vector<std::size_t> order(box_axes_.size());
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
      span += (box_axes_[order[i]].extent - 1) * stride;
      if (!box_axes_[order[i]].known) {
        order.resize(i + 1);
        break;
      }
    }
    return order;
  }

  // So many elements of each axis as make stretches of that many bytes: the last one in equal parts, or in parts that
  // are whole sectors together with what is inside of them.
  std::vector<Taken> parts_for(const Side& side, std::int64_t bytes) const {
    Taken taken(box_axes_.size(), 1);
    std::int64_t inside = side.bytes();
    for (const std::size_t i : order_of(side)) {
      const std::int64_t extent = box_axes_[i].extent, wanted = ceil_quotient(bytes, inside);
      if (wanted >= extent && box_axes_[i].known) {
        taken[i] = extent;
        inside *= extent;
        if (inside >= bytes) return {taken};
        continue;
      }
      std::vector<Taken> parts;
      taken[i] = std::min(wanted, extent);
      taken[i] = ceil_quotient(extent, ceil_quotient(extent, taken[i]));
      parts.push_back(taken);
      const std::int64_t sectors = kSectorBytes / std::gcd<std::int64_t>(inside, kSectorBytes);
      taken[i] = ceil_quotient(std::min(wanted, extent), sectors) * sectors;
      if (taken[i] < extent && taken != parts[0]) parts.push_back(taken);
      return parts;
    }
    return {taken};
  }

  std::vector<Candidate> ranked_boxes() const {
    std::vector<Candidate> candidates;
    const auto widths = {std::int64_t{64},   std::int64_t{128},  std::int64_t{256},  std::int64_t{512},
                         std::int64_t{1024}, std::int64_t{2048}, std::int64_t{4096}, std::int64_t{8192}};
    for (const std::int64_t of_result : widths)
      for (const Taken& stored : parts_for(stored_, of_result))
        for (const std::int64_t of_load : widths)
          for (const Taken& read : parts_for(loads_[0], of_load)) {
            Taken taken = larger(stored, read);
            for (std::size_t l = 1; l < tensors_; ++l) taken = larger(taken, parts_for(loads_[l], of_load)[0]);
            if (std::ranges::find(candidates, taken, &Candidate::taken) == candidates.end() && fits(taken))
              candidates.push_back({taken, cost_of(taken)});
          }
    std::ranges::stable_sort(candidates, {}, &Candidate::cost);
    return candidates;
  }

  static Taken larger(Taken a, const Taken& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
    return a;
  }

  bool fits(const Taken& taken) const {
    std::int64_t bytes = 0;
    for (const Side& load : loads_) {
      std::int64_t count = load.bytes();
      for (std::size_t i = 0; i < taken.size(); ++i)
        if (load.strides[i] > 0) count *= taken[i];
      bytes += count;
    }
    return bytes <= kMostBoxBytes * 9 / 10;
  }

  // At least: sectors for a point, a little more where blocks are too few for all multiprocessors or have few points.
  double cost_of(const Taken& taken) const {
    double cost = sectors_of(taken), blocks = static_cast<double>(samples_.points()), points = 1;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      blocks /= static_cast<double>(box_axes_[i].extent);
      blocks *= static_cast<double>(ceil_quotient(box_axes_[i].extent, taken[i]));
      points *= static_cast<double>(taken[i]);
    }
    const double wanted = target_.multiprocessors;
    if (blocks < wanted) cost *= 1 + 0.15 * (1 - blocks / wanted);
    constexpr double kWantedPoints = 512;  // what else a block does is little then
    if (points < kWantedPoints) cost *= 1 + 0.15 * (1 - points / kWantedPoints);
    return cost;
  }

  double sectors_of(const Taken& taken) const {
    double sectors = beside_ + sectors_of(stored_, taken);
    for (const Side& load : loads_) sectors += sectors_of(load, taken);
    return sectors;
  }

  // `cut`: so many of the axes that a stretch could go along are lines' all the same.
  BoxWalk walk_of(const Side& side, const Taken& taken, std::size_t cut = 0) const {
    BoxWalk walk{.run = {}, .lines = {}, .strides = side.strides, .steps = side.steps};
    for (const std::size_t i : order_of(side)) {
      walk.run.push_back(i);
      if (taken[i] < box_axes_[i].extent) break;
    }
    walk.run.resize(walk.run.size() - std::min(cut, walk.run.size()));
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (taken[i] > 1 && side.strides[i] > 0 && !has(walk.run, i)) walk.lines.push_back(i);
    std::ranges::sort(walk.lines, {}, [&](std::size_t i) { return side.strides[i]; });
    walk.aligned = alignment_of_runs(side, walk, taken);
    return walk;
  }

  int alignment_of_runs(const Side& side, const BoxWalk& walk, const Taken& taken) const {
    // Where the stretch begins that ends, or begins, with so many elements of its last axis.
    const auto aligned_with = [&](std::int64_t of_last) {
      const IndexExpr begin = substitute(side.position, [&](Variable v) -> std::optional<IndexExpr> {
        if (v.kind != Variable::Kind::kAxis) return std::nullopt;
        for (const std::size_t i : walk.run) {
          if (box_axes_[i].axis != v.id) continue;
          const bool backwards = !side.backwards.empty() && side.backwards[i];
          return IndexExpr(backwards ? (i == walk.run.back() ? of_last : taken[i]) - 1 : 0);
        }
        return std::nullopt;
      });
      return fusec::alignment_of(begin, side.bits, pool_.bounds());
    };
    if (walk.run.empty()) return aligned_with(1);
    const std::size_t last = walk.run.back();
    int bytes = aligned_with(taken[last]);
    if (taken[last] == box_axes_[last].extent && box_axes_[last].known) return bytes;
    bytes = std::min(bytes, aligned_with(box_axes_[last].extent));
    return std::gcd(bytes, static_cast<int>(side.strides[last] * taken[last] * side.bytes() % kSectorBytes));
  }

  // A stretch that begins anywhere touches one sector more than it fills, or two.
  double sectors_of(const Side& side, const Taken& taken, std::size_t cut = 0) const {
    const BoxWalk walk = walk_of(side, taken, cut);
    double runs = 1, elements = 1;
    for (const std::uint32_t axis : axes_) {
      const double extent = static_cast<double>(samples_.hint(pool_.extent(axis)));
      const auto at = std::ranges::find(box_axes_, axis, &Axis::axis);
      const auto i = static_cast<std::size_t>(at - box_axes_.begin());
      const double parts = at == box_axes_.end() ? extent : static_cast<double>(ceil_quotient(at->extent, taken[i]));
      if (at == box_axes_.end() || has(walk.lines, i)) {
        runs *= extent;
      } else {
        runs *= parts;
        if (has(walk.run, i)) elements += (extent / parts - 1) * static_cast<double>(side.strides[i]);
      }
    }
    const auto bytes = static_cast<std::int64_t>(elements * side.bytes() + 0.5);
    double touched = sectors_of_stretch(bytes, walk.aligned);
    // What of the result is less than a word is stored one by one.
    if (side.load == kNoExpr && (walk.aligned < 4 || bytes % 4 != 0)) touched += elements_of_word(side.bits) - 1;
    return runs * touched / static_cast<double>(samples_.points());
  }

  // Sectors of neighbouring lines stored by neighbouring threads, where warps then find elements in clearly more banks:
  // lines of whole stretches, or shorter ones, of boxes that ask for no more sectors.
  BoxTiles in_sectors_where_better(const BoxTiles& in_lines, const std::vector<Candidate>& candidates) const {
    constexpr double kFewConflicts = 0.6, kAsMany = 1.01;
    if (in_lines.conflicts < kFewConflicts) return in_lines;
    BoxTiles best = in_lines;
    const int of_sector = kSectorBytes / std::max(4, stored_.bytes());
    const auto consider = [&](const Candidate& candidate, std::size_t cut, int lanes) {
      BoxTiles other = laid_out(candidate, cut, lanes);
      other.time_in_lines = in_lines.time;
      const bool better = other.time < best.time && 2 * other.conflicts <= in_lines.conflicts;
      const bool as_busy = instructions_of_store(other) <= kAsMany * instructions_of_store(in_lines);
      if (better && as_busy && other.bytes <= kMostBoxBytes && other.sectors <= in_lines.sectors)
        best = std::move(other);
    };
    for (const Candidate& candidate : candidates)
      for (std::size_t cut = 0; cut < std::min<std::size_t>(in_lines.stored.run.size(), 2); ++cut)
        for (const int sectors : {1, 2}) consider(candidate, cut, sectors * of_sector);
    return best;
  }

  // `cut`, `lanes`: of how the result is stored (BoxWalk).
  BoxTiles laid_out(const Candidate& candidate, std::size_t cut = 0, int lanes = 0) const {
    const Taken& taken = candidate.taken;
    BoxTiles tiles{.axes = {}, .stored = walk_of(stored_, taken, cut), .loads = {}};
    tiles.stored.lanes = lanes;
    for (std::size_t i = 0; i < taken.size(); ++i)
      tiles.axes.push_back({.axis = box_axes_[i].axis, .extent = static_cast<int>(taken[i])});
    choose_threads(tiles);
    const double more_sectors = cut > 0 ? sectors_of(stored_, taken, cut) - sectors_of(stored_, taken) : 0;
    tiles.sectors = sectors_of(taken) + more_sectors;
    const std::vector<BoxAccess> accesses = reading_accesses(tiles, stored_.bits);
    double issued = 0, passes = 0;  // for a point
    for (const Side& side : loads_) {
      PlacedLoad placed = place_lines(side, taken, tiles, accesses);
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
  double instructions_of_store(const BoxTiles& tiles) const {
    constexpr double kElement = 4, kQuotient = 3, kWord = 14, kPlaceOfWord = 10, kOfThread = 70, kOfPart = 12;
    const BoxItems items = items_of_store(tiles);
    const bool one_place =
        items.turns_of_line() == 1 || tiles.stored.run.size() == 1;  // but for a multiple of the turn
    const bool once = items.way == BoxItems::Way::kLinesAtOnce && one_place && tiles.stored.aligned == kSectorBytes;
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
  static double items_of_lanes(const BoxItems& items) {
    return static_cast<double>(items.lines * items.of_line) / items.busy;
  }

  BoxItems items_of_store(const BoxTiles& tiles) const {
    return items_for(line_count(tiles.stored, tiles.axes),
                     line_bytes(tiles.stored, tiles.axes, stored_.bits) / std::max(4, stored_.bytes()), tiles.threads,
                     tiles.stored.lanes);
  }

  // As few instructions as possible, in blocks that have enough threads for what is under way.
  void choose_threads(BoxTiles& tiles) const {
    constexpr int kFewest = 64, kWanted = 256, kMost = 384;
    constexpr std::int64_t kBytesEach = 48;
    const double points = static_cast<double>(point_count(tiles.axes));
    const auto bytes = static_cast<std::int64_t>(points) * stored_.bytes();
    const int from =
        static_cast<int>(std::clamp<std::int64_t>(bytes / kBytesEach / kWarpLanes * kWarpLanes, kFewest, kWanted));
    double least = -1;
    for (int threads = from; threads <= kMost; threads += kWarpLanes) {
      BoxTiles other = tiles;
      other.threads = threads;
      const double instructions = instructions_of_store(other) * points;
      if (least >= 0 && instructions >= 0.98 * least) continue;
      least = instructions;
      tiles.threads = threads;
    }
  }

  // What lines lie apart at least: each with what else is in its first and its last vector.
  int slot_bytes(const BoxLoad& load, const BoxTiles& tiles) const {
    const int element = bits(pool_[load.load].dtype) / 8, run = static_cast<int>(run_elements(load.walk, tiles.axes));
    return run * element + (load.in_vectors ? 2 * (kVectorBytes - std::min(kVectorBytes, load.walk.aligned)) : 0);
  }
  int bytes_of(const BoxLoad& load, const BoxTiles& tiles) const {
    int bytes = slot_bytes(load, tiles) + kVectorBytes;
    for (const std::size_t i : load.walk.lines) bytes += (tiles.axes[i].extent - 1) * most_place(load, i);
    return (bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  }

  // Whatever the launch's sizes.
  static int most_place(const BoxLoad& load, std::size_t axis) {
    const int place = load.places[axis];
    return load.place_varies(axis) ? place / kVectorBytes * kVectorBytes + kVectorBytes - 1 : place;
  }

  struct PlacedLoad {
    BoxLoad load;
    double conflicts = 0;           // for each access
    double issued = 0, passes = 0;  // instructions of a warp and passes of shared memory, for a point
  };

  // The cheapest way to copy it: as vectors or as elements, stretches as long as they are or shorter ones, and gaps
  // between the lines.
  PlacedLoad place_lines(const Side& side, const Taken& taken, const BoxTiles& tiles,
                         const std::vector<BoxAccess>& accesses) const {
    std::optional<PlacedLoad> best;
    double least = 0;
    const std::size_t runs = walk_of(side, taken).run.size();
    constexpr double kFewConflicts = 0.1, kBearable = 0.6;
    for (const bool in_vectors : {true, false}) {
      if (best && best->conflicts < kBearable) break;
      for (std::size_t cut = 0; cut < std::min<std::size_t>(runs, 3); ++cut) {
        BoxLoad load = unplaced(side, walk_of(side, taken, cut));
        load.in_vectors = in_vectors;
        // The lines of a warp are neighbours in memory.
        if (cut > 0 &&
            10 * line_bytes(load.walk, tiles.axes, side.bits) > 11 * run_elements(load.walk, tiles.axes) * side.bytes())
          load.walk.from = piece_of(load);
        PlacedLoad placed = place_lines(load, tiles, accesses);
        if (bytes_of(placed.load, tiles) > kMostBoxBytes / static_cast<int>(loads_.size())) continue;
        const double cost = movement_time(tiles.sectors, placed.issued + instructions_of_store(tiles), placed.passes);
        if (best && cost >= least) continue;
        least = cost;
        best = std::move(placed);
        if (best->conflicts < kFewConflicts) return *best;
      }
    }
    if (best) return *best;
    return place_lines(unplaced(side, walk_of(side, taken)), tiles, accesses);
  }
  static BoxLoad unplaced(const Side& side, BoxWalk walk) {
    return {.load = side.load, .walk = std::move(walk), .backwards = side.backwards, .places = {}};
  }

  PlacedLoad place_lines(const BoxLoad& of, const BoxTiles& tiles, const std::vector<BoxAccess>& reads) const {
    PlacedLoad placed{.load = of};
    const int element = bits(pool_[of.load].dtype) / 8, piece = piece_of(of);
    const std::vector<int> gaps = of.in_vectors ? std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}
                                                : std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 28};
    const std::vector<BoxAccess> writes = writing_accesses(of.walk, tiles.axes, element * 8, piece);
    const int written = piece == 4 ? element : piece;  // bytes of a lane by one access
    const std::size_t lines = of.walk.lines.size();
    double fewest = -1;
    BoxLoad load = of;
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
    const BoxItems items =
        items_for(line_count(of.walk, tiles.axes), line_bytes(of.walk, tiles.axes, element * 8) / piece, tiles.threads,
                  of.walk.lanes);
    const double copied = kCopied + (piece == 4 && element < 4 ? kElementCopied * 4 / element : 0);
    placed.issued = items_of_lanes(items) * copied / static_cast<double>(point_count(tiles.axes)) / 32;
    placed.passes = (fewest + std::max(1, element / 4) + (written < 4 ? 1 : element / 4.0)) / 32;
    return placed;
  }

  static std::vector<int> places_of_reads(const BoxLoad& load) {
    std::vector<int> places = load.places;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (load.backwards[i]) places[i] = -places[i];
    return places;
  }

  // Bytes that a thread copies at a time: a vector, a word of smaller elements, a wider element.
  int piece_of(const BoxLoad& load) const {
    return load.in_vectors ? kVectorBytes : std::max(4, bits(pool_[load.load].dtype) / 8);
  }

  void set_places(BoxLoad& load, const BoxTiles& tiles, std::array<int, 2> gaps) const {
    const int element = bits(pool_[load.load].dtype) / 8, unit = load.in_vectors ? kVectorBytes : element;
    load.places.assign(tiles.axes.size(), 0);
    for (const std::size_t i : load.walk.run) load.places[i] = static_cast<int>(load.walk.strides[i]) * element;
    std::int64_t least = slot_bytes(load, tiles);
    for (std::size_t l = 0; l < load.walk.lines.size(); ++l) {
      const std::size_t i = load.walk.lines[l];
      const std::int64_t in_memory = load.walk.strides[i] * element % unit;
      const bool varies = load.in_vectors && !load.walk.steps[i].is_constant();
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
  Side stored_;
  std::vector<Side> loads_;
  std::size_t tensors_ = 0;  // of them, the first ones; the others are of tables
  std::vector<Axis> box_axes_;
  double beside_ = 0;  // sectors for a point of what is read where it is stored
};

}  // namespace

std::optional<BoxTiles> plan_box_tiles(const Kernel& kernel, const Graph& graph, const Target& target) {
  return BoxTilesPlanner(kernel, graph, target).run();
}

}  // namespace fusec
