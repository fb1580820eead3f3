#include "schedule/movement/staged_copy.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"
#include "schedule/layout/memory_access.h"
#include "schedule/movement/staged_copy_padding.h"
#include "schedule/movement/staged_copy_tile.h"

namespace fusec {
namespace {

// Elements of the last axis that a thread can store at a time; 0 where half bytes would be.
int stored_width(const Kernel& kernel, const Graph& graph) {
  const ExprPool& pool = kernel.pool;
  const std::uint32_t last = kernel.outputs[0].axes.back();
  int widest = 4;
  for (const ExprId id : reachable(pool, roots_of(kernel)))
    if (pool[id].op == ExprOp::kLoad && mentions(fusec::position_of(graph, pool, id), axis_variable(last)))
      widest = std::max(widest, bits(pool[id].dtype));
  for (const KernelOutput& output : kernel.outputs) widest = std::max(widest, bits(output.type.dtype));
  const bool half_bytes = writes_half_bytes(kernel);
  int width = 128 / widest;
  for (const KernelOutput& output : kernel.outputs) {
    const IndexExpr position = position_of(pool, output);
    if (coefficient_of(position, axis_variable(last)) != 1) return 0;
    while (width > 1 && !(proves_multiple_of(position - IndexExpr::axis(last), width, pool.bounds()) &&
                          proves_multiple_of(pool.extent(last), width, pool.bounds())))
      width /= 2;
  }
  // Less than a word is stored one by one: neighbouring elements had better be neighbouring threads'.
  for (const KernelOutput& output : kernel.outputs)
    if (const int word = elements_of_word(bits(output.type.dtype));
        width < word && kernel.outputs.size() == 1 &&
        proves_multiple_of(position_of(pool, output) - IndexExpr::axis(last), word, pool.bounds()) &&
        proves_multiple_of(pool.extent(last), word, pool.bounds()))
      width = word;
  for (const KernelOutput& output : kernel.outputs)
    if (width * bits(output.type.dtype) < 32) width = half_bytes ? std::min(width, 2) : 1;
  return half_bytes && width < 2 ? 0 : width;
}

class StagedCopyPlanner : private TileSides {
 public:
  StagedCopyPlanner(Kernel kernel, const Graph& graph, const Target& target, int width)
      : TileSides(std::move(kernel), graph, width), target_(target) {}

  std::optional<StagedCopy> run() {
    if (!find_loads()) return std::nullopt;
    find_axes();
    if (order_of(stored_).empty() || std::ranges::any_of(sides_, [&](const Side& s) { return order_of(s).empty(); }))
      return std::nullopt;
    std::optional<StagedCopy> best;
    const std::vector<Candidate> candidates = ranked();
    const std::size_t most = width_ > 0 ? 2 : 6;
    for (std::size_t i = 0; i < std::min(candidates.size(), most); ++i) {
      if (best && candidates[i].cost * 0.85 >= best->time) break;
      StagedCopy plan = laid_out(candidates[i]);
      if (plan.bytes > kMostStagedBytes || (best && plan.time >= best->time)) continue;
      best = std::move(plan);
    }
    if (best) best->kernel = std::move(kernel_);
    return best;
  }

 private:
  using Side = TileSide;
  using Extents = TileExtents;
  struct Candidate {
    Extents extents;
    double cost;
  };

  // So many elements of each axis as make rows of that many bytes: the last one in equal parts, or in parts that are
  // whole sectors together with what is inside of them.
  std::vector<Extents> parts_for(const Side& side, double bytes) const {
    Extents extents(tile_.size(), 1);
    double inside = side.bytes();
    for (const std::size_t i : order_of(side)) {
      const std::int64_t extent = tile_[i].extent,
                         wanted = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / inside + 0.999));
      if (wanted >= extent && tile_[i].known) {
        extents[i] = extent;
        inside *= static_cast<double>(extent);
        if (inside >= bytes) return {extents};
        continue;
      }
      std::vector<Extents> parts;
      extents[i] = std::min(wanted, extent);
      extents[i] = ceil_quotient(extent, ceil_quotient(extent, extents[i]));
      const std::int64_t sectors =
          kSectorBytes * 8 / std::gcd<std::int64_t>(static_cast<std::int64_t>(inside * 8), kSectorBytes * 8);
      const Extents equal = extents;
      extents[i] = ceil_quotient(std::min(wanted, extent), sectors) * sectors;
      parts.push_back(equal);
      if (extents[i] < extent && extents != equal) parts.push_back(extents);
      // Vectors are better of whole sectors, even where the last part is shorter then.
      if (width_ > 0) std::ranges::reverse(parts);
      return parts;
    }
    return {extents};
  }

  std::vector<Candidate> ranked() const {
    std::vector<Candidate> candidates;
    std::vector<double> widths = {64, 128, 256, 512, 1024};
    if (tensors_ > 1 && width_ > 0) widths.insert(widths.begin(), 32);
    if (width_ == 0) widths.insert(widths.end(), {2048, 4096, 8192});
    for (const double of_result : widths)
      for (const Extents& stored : parts_for(stored_, of_result))
        for (const double of_load : widths)
          for (const Extents& read : parts_for(sides_[0], of_load)) {
            Extents extents = larger(stored, read);
            for (std::size_t s = 1; s < tensors_; ++s)
              extents = larger(extents, parts_for(sides_[s], width_ > 0 ? of_load / 2 : of_load)[0]);
            if (std::ranges::find(candidates, extents, &Candidate::extents) == candidates.end() && fits(extents))
              candidates.push_back({extents, cost_of(extents)});
          }
    std::ranges::stable_sort(candidates, {}, &Candidate::cost);
    return candidates;
  }
  static Extents larger(Extents a, const Extents& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
    return a;
  }
  bool fits(const Extents& extents) const {
    double bytes = 0;
    for (const Side& side : sides_) bytes += tile_bytes(side, extents);
    return bytes <= kMostStagedBytes * (width_ > 0 ? 0.6 : 0.9);
  }
  static double tile_bytes(const Side& side, const Extents& extents) {
    double count = side.in_vectors ? side.bytes() : std::max(1.0, side.bytes());
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (side.strides[i] > 0) count *= static_cast<double>(extents[i]);
    return count;
  }

  // Sectors for a point, a little more where blocks are too few for all multiprocessors or have few points.
  double cost_of(const Extents& extents) const {
    double cost = sectors_of(extents), blocks = static_cast<double>(samples_.points()), points = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      blocks /= static_cast<double>(tile_[i].extent);
      blocks *= static_cast<double>(ceil_quotient(tile_[i].extent, extents[i]));
      points *= static_cast<double>(extents[i]);
    }
    const double wanted = target_.multiprocessors, wanted_points = width_ > 0 ? 8192 / stored_.bytes() : 512;
    if (blocks < wanted) cost *= 1 + 0.15 * (1 - blocks / wanted);
    if (points < wanted_points) cost *= 1 + 0.15 * (1 - points / wanted_points);
    constexpr double kLine = 128;  // bytes of memory that had better be taken together
    if (width_ > 0) {
      for (std::size_t s = 0; s <= tensors_; ++s) {
        const Side& side = s == 0 ? stored_ : sides_[s - 1];
        double run = side.bytes();
        for (const std::size_t i : rows_of(side, extents).run) run *= static_cast<double>(extents[i]);
        if (run < kLine) cost *= 1 + 0.05 * (1 - run / kLine);
      }
    }
    return cost;
  }
  StagedCopy laid_out(const Candidate& candidate) const {
    const Extents& extents = candidate.extents;
    StagedCopy plan;
    plan.width = width_;
    plan.stored = rows_of(stored_, extents);
    double points = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      plan.axes.push_back({.axis = tile_[i].axis, .extent = static_cast<int>(extents[i])});
      points *= static_cast<double>(extents[i]);
    }
    constexpr double kFewest = 256, kMany = 8192;
    plan.few_points = points < kFewest && static_cast<double>(samples_.points()) >= kMany;
    plan.sectors = sectors_of(extents);
    if (width_ > 0) {
      find_planes(plan, extents);
      std::optional<StagedCopy> best;
      for (const int lanes : lanes_of_store(plan)) {
        StagedCopy other = plan;
        find_items(other, lanes);
        place_operands(other, candidate, points);
        if (!best || other.time < 0.995 * best->time) best = std::move(other);
        if (best->conflicts == 0) break;
      }
      return *std::move(best);
    }
    place_operands(plan, candidate, points);
    constexpr double kFewConflicts = 0.6;
    if (plan.conflicts < kFewConflicts) return plan;
    // Sectors of several rows, stored by the threads of a warp, where they find their elements in more banks.
    StagedCopy by_sector = plan;
    by_sector.operands.clear();
    by_sector.bytes = 0;
    by_sector.conflicts = 0;
    by_sector.store_lanes = kSectorBytes / std::max(4, stored_.bits / 8);
    place_operands(by_sector, candidate, points);
    return by_sector.time < plan.time ? by_sector : plan;
  }

  void place_operands(StagedCopy& plan, const Candidate& candidate, double points) const {
    const Extents& extents = candidate.extents;
    choose_threads(plan, points);
    const std::vector<LaneAccess> reads = reading_accesses(plan, stored_.bits);
    double issued = instructions_of_store(plan, points), passes = 0;
    for (Side side : sides_) {
      side.in_vectors &= side.bits >= 8 || plan.planes > 1;
      PaddedOperand best;
      bool found = false;
      const std::size_t runs = rows_of(side, extents).run.size();
      for (std::size_t cut = 0; cut < std::min<std::size_t>(runs, side.in_vectors && !side.indexed ? 3 : 1); ++cut) {
        StagedOperand operand{.load = side.load, .bits = side.bits, .rows = rows_of(side, extents, cut)};
        operand.in_vectors = side.in_vectors;
        operand.indexed = side.indexed && side.in_vectors;
        for (const int aligned : side.aligned) operand.varies.push_back(aligned < kVectorBytes);
        PaddedOperand placed = choose_padding(plan, std::move(operand), reads);
        if (found && movement_time(plan.sectors, issued + placed.issued, placed.passes) >=
                         movement_time(plan.sectors, issued + best.issued, best.passes))
          continue;
        best = std::move(placed);
        found = true;
        if (best.conflicts < 0.1) break;
      }
      best.operand.start = plan.bytes;
      plan.bytes += staged_bytes(best.operand, plan.axes);
      plan.conflicts += best.conflicts;
      issued += best.issued;
      passes += best.passes;
      plan.operands.push_back(std::move(best.operand));
    }
    plan.time = movement_time(candidate.cost + sectors_beyond(plan), issued, passes);
  }

  // Neighbours along what loads run along that are one word of shared memory, where all loads agree.
  void find_planes(StagedCopy& plan, const Extents& extents) const {
    const int planes = std::max(1, 32 / sides_[0].bits);
    const auto at = std::ranges::find(tile_, sides_[0].along, &Axis::axis);
    // Each plane's vectors are whole sectors of neighbouring threads.
    const bool sectors = plan.axes[group_axis()].extent * width_ * narrowest() >= kSectorBytes * 8;
    if (planes == 1 || at == tile_.end() || !(sectors || sides_[0].bits == 4)) return;
    const auto along = static_cast<std::size_t>(at - tile_.begin());
    const bool whole =
        extents[along] % planes == 0 && proves_multiple_of(kernel_.pool.extent(at->axis), planes, bounds());
    for (const Side& side : sides_) {
      const TileRows rows = rows_of(side, extents);
      if (!whole || !side.in_vectors || side.bits != sides_[0].bits || side.along != sides_[0].along ||
          rows.aligned < 4 || rows.run.empty() || rows.run[0] != along)
        return;
    }
    plan.planes = planes;
    plan.along = along;
  }

  // For a point: sectors that neighbouring threads' part of a row touches beyond those of the row.
  double sectors_beyond(const StagedCopy& plan) const {
    if (width_ == 0) return 0;
    double points = static_cast<double>(plan.items[0].count) * width_;
    std::vector<std::size_t> run = plan.stored.run;  // but for the last axis
    std::erase_if(run, [&](std::size_t i) { return i >= group_axis(); });
    std::size_t r = 0;  // axes of the row that neighbouring threads have all of
    bool all = plan.items[0].count == plan.axes[group_axis()].extent;
    for (std::size_t d = 1; all && d < plan.items.size() && r < run.size() && plan.items[d].axis == run[r]; ++d, ++r) {
      points *= plan.items[d].count * plan.items[d].step;
      all = plan.items[d].count * plan.items[d].step == plan.axes[run[r]].extent && plan.items[d].step == 1;
    }
    const auto bytes = static_cast<std::int64_t>(points * stored_.bytes());
    const int aligned = static_cast<int>(std::gcd<std::int64_t>(std::max<std::int64_t>(bytes, 1), plan.stored.aligned));
    if (aligned == kSectorBytes) return 0;
    const double row = static_cast<double>(run_elements(plan.stored, plan.axes));
    const auto row_size = static_cast<std::int64_t>(row * stored_.bytes());
    if (bytes < 1 || row <= points) return 0;
    return mean_sectors_of_run(bytes, aligned) / points - mean_sectors_of_run(row_size, plan.stored.aligned) / row;
  }

  int narrowest() const {
    int narrowest = stored_.bits;
    for (const KernelOutput& output : kernel_.outputs) narrowest = std::min(narrowest, bits(output.type.dtype));
    return narrowest;
  }
  std::size_t group_axis() const { return width_ > 1 ? tile_.size() - 2 : tile_.size() - 1; }
  // Neighbouring threads that store one line of memory, 128 bytes or whole sectors, the best first.
  std::vector<int> lanes_of_store(const StagedCopy& plan) const {
    const int extent = plan.axes[group_axis()].extent, bits_of_group = width_ * narrowest();
    std::vector<int> found;
    for (const int lanes : {std::max(1, 1024 / bits_of_group), 32, 16, 8, 4, 2})
      if (extent % lanes == 0 && (lanes < 16 || lanes * bits_of_group <= 1024 || plan.stored.aligned < kSectorBytes) &&
          lanes <= kWarpLanes && lanes * bits_of_group >= kSectorBytes * 8)
        found.push_back(lanes);
    found.push_back(extent);
    return found;
  }

  // Neighbouring threads store a line of memory, then those of neighbouring places in what is read.
  void find_items(StagedCopy& plan, int lanes) const {
    const std::size_t stored = group_axis();
    const int extent = plan.axes[stored].extent;
    plan.items.push_back({.axis = stored, .count = lanes, .step = 1});
    const auto add = [&](std::size_t i) {
      const int step = i == plan.along && plan.planes > 1 ? plan.planes : 1;
      if (plan.axes[i].extent > step)
        plan.items.push_back({.axis = i, .count = plan.axes[i].extent / step, .step = step});
    };
    const auto along = std::ranges::find(tile_, sides_[0].along, &Axis::axis);
    const auto first = along == tile_.end() ? tile_.size() : static_cast<std::size_t>(along - tile_.begin());
    if (first < tile_.size()) add(first);
    for (std::size_t i = stored; i-- > 0;)
      if (i != first) add(i);
    if (extent > lanes) plan.items.push_back({.axis = stored, .count = extent / lanes, .step = lanes});
  }

  double items_of(const StagedCopy& plan, double points) const {
    if (width_ > 0) return points / (width_ * plan.planes);
    return static_cast<double>(row_count(plan.stored, plan.axes)) * words_of_row(plan.stored, plan.axes, stored_.bits);
  }
  double busy(const StagedCopy& plan, double points, int threads) const {
    if (width_ == 0) {
      const int pieces = words_of_row(plan.stored, plan.axes, stored_.bits);
      return row_threads(row_count(plan.stored, plan.axes), pieces, threads, plan.store_lanes).busy;
    }
    const auto items = static_cast<std::int64_t>(items_of(plan, points) + 0.5);
    return static_cast<double>(items) / static_cast<double>(ceil_quotient(items, threads) * threads);
  }
  // As many threads as are busy, in blocks that have enough of them for what is under way.
  void choose_threads(StagedCopy& plan, double points) const {
    double best = 0;
    const double wanted = points * stored_.bytes() / 48;
    for (const int threads : {256, 320, 384, 224, 192, 160, 128, 96, 64}) {
      if (best > 0 && threads < wanted && threads < 256) continue;
      const double found = busy(plan, points, threads);
      if (found <= 1.03 * best) continue;
      best = found;
      plan.threads = threads;
    }
  }

  // Of a warp, for a point.
  double instructions_of_store(const StagedCopy& plan, double points) const {
    const double items = items_of(plan, points) / busy(plan, points, plan.threads);
    const auto outputs = static_cast<double>(kernel_.outputs.size());
    double item = 0;
    if (width_ > 0) {
      const double kItem = width_ == 1 ? 18 : 10;
      constexpr double kVector = 6, kElement = 2, kTurned = 1.5;
      item = kItem + plan.planes * outputs * kVector;
      if (plan.planes > 1)
        item += static_cast<double>(sides_.size()) * width_ * (kTurned + plan.planes / 2.0);
      else
        item += static_cast<double>(sides_.size()) * width_ * kElement;
    } else {
      constexpr double kElement = 4, kQuotient = 3, kWord = 9, kPart = 16;
      const double each = elements_of_word(stored_.bits);
      item = kWord + each * (kElement + kQuotient * static_cast<double>(plan.stored.run.size() - 1));
      // A row that does not begin and end at 4-byte words stores its first and last word element by element: two
      // branches.
      if (each > 1 && (plan.stored.aligned < 4 || run_elements(plan.stored, plan.axes) * stored_.bits / 8 % 4 != 0))
        item += 2.0 * kPart * each * 32 * static_cast<double>(row_count(plan.stored, plan.axes)) / items;
    }
    constexpr double kThread = 70;
    return (items * item + kThread * plan.threads) / points / 32;
  }

  const Target& target_;
};

}  // namespace

std::optional<StagedCopy> plan_staged_vectors(const Kernel& kernel, const Graph& graph, const Target& target) {
  if (!has_crossing_load(kernel, graph)) return std::nullopt;
  const int width = stored_width(kernel, graph);
  if (width == 0) return std::nullopt;
  return StagedCopyPlanner(width > 1 ? split_last_axis(kernel, width) : kernel, graph, target, width).run();
}

std::optional<StagedCopy> plan_staged_words(const Kernel& kernel, const Graph& graph, const Target& target) {
  if (kernel.outputs[0].axes.empty()) return std::nullopt;
  return StagedCopyPlanner(kernel, graph, target, 0).run();
}

}  // namespace fusec
