#include "schedule/convolution/find_sliding_window.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/convolution/windows.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;
using SlidingWindowPoint = SlidingWindow::Point;

constexpr std::int64_t kMaxSlidingWindowPoints = 256;  // of all reductions; they are fully unrolled

// The divisions and remainders in a kernel's positions.
std::size_t divisions(const Kernel& kernel, const Graph& graph) {
  std::size_t count = 0;
  const auto add = [&](const IndexExpr& e) {
    rewrite_atoms(e, [&](IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) {
      count += kind == IndexAtom::Kind::kFloorDiv || kind == IndexAtom::Kind::kMod ? 1 : 0;
      return combine(kind, a, b);
    });
  };
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad) add(position_of(graph, kernel.pool, id));
    if (n.op == ExprOp::kIndex) add(n.indices[0]);
  }
  for (const KernelOutput& o : kernel.outputs) add(position_of(kernel.pool, o));
  return count;
}

// Merges images and channels into one axis; columns stay separate.
Kernel merge_planes(const Kernel& kernel, const Graph& graph) {
  Kernel merged = drop_unit_axes(kernel);
  std::size_t divided = divisions(merged, graph);
  for (std::size_t i = merged.outputs[0].axes.size(); i-- > 2;) {
    Kernel candidate = merge_pair(merged, i - 2);
    const std::size_t now = divisions(candidate, graph);
    if (now > divided) continue;
    divided = now;
    merged = std::move(candidate);
  }
  return merged;
}

class SlidingWindowFinder {
 public:
  SlidingWindowFinder(const Kernel& kernel, const Graph& graph, const Target& target) : graph_(graph), target_(target) {
    found_.kernel = merge_planes(kernel, graph);
    depends_ = dependences(pool());
  }

  std::optional<SlidingWindow> run() {
    if (writes_half_bytes(found_.kernel) || outputs().empty() || !find_reductions()) return std::nullopt;
    const auto columns = contiguous_axis(found_.kernel);
    if (!columns || *columns != outputs().back()) return std::nullopt;
    std::optional<SlidingWindow> best;
    double least = plain_cost() * kBetter;
    const Axes axes = outputs();  // a copy: other axes are tried below
    for (const std::uint32_t axis : axes)
      if (axis != *columns && value_at_hint(pool().extent(axis), graph_.symbols) > 1) consider(axis, least, best);
    return best;
  }

 private:
  static constexpr std::int64_t kPlace = 16, kPlaces = 4;  // of an axis, where positions are compared as numbers
  static constexpr double kBetter = 0.8;                   // relative to the cost of one result per thread

  const ExprPool& pool() const { return found_.kernel.pool; }
  const Axes& outputs() const { return found_.kernel.outputs[0].axes; }
  bool depends_on(ExprId id, std::uint32_t axis) const { return std::ranges::binary_search(depends_[id], axis); }

  // Requires reductions of few points each, without nesting.
  bool find_reductions() {
    auto reductions = window_reductions(found_.kernel);
    if (!reductions) return false;
    found_.reductions = *std::move(reductions);
    std::int64_t points = 0;
    for (const ExprId r : found_.reductions) {
      const auto own = reduced_elements(pool(), r);
      if (!own || *own < 1 || *own > kMaxSlidingWindowPoints) return false;
      points += *own;
    }
    return points <= kMaxSlidingWindowPoints;
  }

  Axes axes_of_reductions() const {
    Axes all;
    for (const ExprId r : found_.reductions) all.insert(all.end(), pool()[r].axes.begin(), pool()[r].axes.end());
    return all;
  }

  // Finds the loads that differ between points. False if one of them cannot be placed.
  bool find_loads() {
    found_.loads.clear();
    Axes axes = axes_of_reductions();
    axes.push_back(found_.sliding_axis);
    bool across = false;  // across columns, not one element per column
    for (const ExprId id : reachable(pool(), roots_of(found_.kernel))) {
      const ExprNode& n = pool()[id];
      if (n.op != ExprOp::kLoad || std::ranges::none_of(axes, [&](auto a) { return depends_on(id, a); })) continue;
      if (bits(n.dtype) < 8) return false;
      for (const ExprId value : values_in(n))  // which determine its position
        if (std::ranges::any_of(axes, [&](auto a) { return depends_on(value, a); })) return false;
      if (n.args[0] != kNoExpr && !index_comparisons(pool(), n.args[0])) return false;
      for (const IndexExpr& extent : graph_.tensor(n.source).shape)
        if (range_of(extent, pool().bounds()).min < 1) return false;
      across = across || !values_in(n).empty() ||
               !coefficient_of(position_of(graph_, pool(), id), axis_variable(outputs().back()));
      found_.loads.push_back(id);
    }
    // Kernels without windows are better vectorized along the columns, and data movement has its own schedules.
    return !found_.loads.empty() && (!found_.reductions.empty() || (across && (reads_again() || resamples())));
  }

  // True if different results read the same elements of a tensor with several loads. Elements that all results share
  // are no window.
  bool reads_again() const {
    std::map<ValueId, std::set<IndexExpr>> read;
    std::map<ValueId, int> loads;
    for (const ExprId id : found_.loads) ++loads[pool()[id].source];
    for (const ExprId id : found_.loads)
      for (std::int64_t step = 0; step < found_.steps && depends_on(id, found_.sliding_axis); ++step) {
        const IndexExpr at = index_at(found_, position_of(graph_, pool(), id), {.step = step});
        if (!read[pool()[id].source].insert(at).second && loads[pool()[id].source] > 1) return true;
      }
    return false;
  }

  // True if several elements of a tensor are read per result, at computed positions that advance faster or slower than
  // the columns. Position arithmetic that is independent of the walked axis is computed once.
  bool resamples() const {
    std::map<ValueId, int> loads;
    for (const ExprId id : found_.loads)
      if (depends_on(id, found_.sliding_axis) && is_resampled(id) && ++loads[pool()[id].source] > 1) return true;
    return false;
  }

  bool is_resampled(ExprId load) const {
    const IndexExpr at = position_of(graph_, pool(), load);
    const std::vector<ExprId> values = values_in(pool()[load]);
    if (!values.empty()) return std::ranges::all_of(values, [&](ExprId value) { return is_of_indices(pool(), value); });
    bool rolled = false;
    rewrite_atoms(at, [&](IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) {
      rolled = rolled || kind == IndexAtom::Kind::kMod;
      return combine(kind, a, b);
    });
    const std::int64_t columns = value_at_hint(pool().extent(outputs().back()), graph_.symbols);
    const auto place = [&](std::int64_t column) {
      return evaluate(at, [&](Variable v) {
        if (v.kind == Variable::Kind::kSymbol) return graph_.symbols[v.id].hint;
        return v == axis_variable(outputs().back()) ? column : 0;
      });
    };
    constexpr double kAlike = 0.05;
    const double step = static_cast<double>(place(columns - 1) - place(0)) / static_cast<double>(columns - 1);
    return !rolled && columns > 1 && std::abs(step - 1) > kAlike;
  }

  // Gives each thread `steps` results of the axis. False if the axis may have fewer elements.
  void divide(std::uint32_t axis, int steps) {
    ExprPool& p = found_.kernel.pool;
    const IndexExpr extent = p.extent(axis);
    found_.sliding_axis = axis, found_.steps = steps;
    found_.whole = proves_multiple_of(extent, steps, p.bounds());
    found_.clipped = !found_.whole && range_of(extent, p.bounds()).min >= steps;
    found_.tiles = p.new_axis(simplify(ceil_div(extent, steps), p.bounds()));
    found_.first = p.new_axis(found_.clipped ? simplify(extent - steps + 1, p.bounds()) : extent);
    found_.whole = found_.whole || found_.clipped;
  }

  // True if the reduction's expression depends on the window row only through its loads and their masks.
  bool tells_by_loads(ExprId reduction) const {
    std::vector<ExprId> left{pool()[reduction].args[0]};
    std::set<ExprId> seen;
    while (!left.empty()) {
      const ExprId id = left.back();
      left.pop_back();
      if (id == kNoExpr || !seen.insert(id).second) continue;
      const ExprNode& n = pool()[id];
      if (n.op == ExprOp::kLoad) continue;
      if (n.op == ExprOp::kSelect && index_comparisons(pool(), n.args[0])) {
        left.insert(left.end(), n.args.begin() + 1, n.args.end());
        continue;
      }
      if (n.op == ExprOp::kIndex) return false;
      left.insert(left.end(), n.args.begin(), n.args.end());
    }
    return true;
  }

  bool may_be_regrouped(ExprId reduction) const {
    const ExprNode& n = pool()[reduction];
    if (n.reduction == Reduction::kMax || n.reduction == Reduction::kMin) return true;
    return n.reduction == Reduction::kSum && is_float(n.type) && !found_.kernel.exact_steps;
  }

  // For each reduction, chooses the axis with the most window rows shared by results.
  void choose_slid() {
    found_.slid.clear();
    for (const ExprId r : found_.reductions) {
      if (!may_be_regrouped(r) || !tells_by_loads(r)) continue;
      std::optional<std::uint32_t> best;
      double least = 1;
      for (const std::uint32_t axis : pool()[r].axes) {
        if (are_all_distinct(r, axis)) continue;
        found_.slid[r] = axis;
        const double share = fraction_of_distinct_rows(r, *pool().extent(axis).as_constant());
        if (share >= least) continue;
        least = share;
        best = axis;
      }
      if (best)
        found_.slid[r] = *best;
      else
        found_.slid.erase(r);
    }
  }

  // Whether no two windows share a row. It is enough that one index depends on the result and not on the row, and that
  // an index depends on the row.
  bool are_all_distinct(ExprId reduction, std::uint32_t rows) const {
    bool tells_results = false, tells_rows = false;
    for (const ExprId id : reachable(pool(), std::span(pool()[reduction].args.data(), 1))) {
      if (pool()[id].op != ExprOp::kLoad) continue;
      for (const IndexExpr& e : pool()[id].indices) {
        const auto counts = [&](std::uint32_t axis) { return coefficient_of(e, axis_variable(axis)).value_or(0) != 0; };
        tells_results = tells_results || (counts(found_.sliding_axis) && !mentions(e, axis_variable(rows)));
        tells_rows = tells_rows || counts(rows);
      }
    }
    return tells_results && tells_rows;
  }

  // The positions of a load at a point as numbers, with the other axes at kPlaces arbitrary places each. Loads of equal
  // numbers are taken for one. That is cheaper to find out than from expressions (load_position), and a pair that is
  // equal by chance changes the predicted cost alone: kernels are emitted from expressions.
  using Places = std::vector<std::int64_t>;
  void add_places(std::span<const IndexExpr> indices, const SlidingWindowPoint& point, Places& places) const {
    for (std::int64_t turn = 0; turn < kPlaces; ++turn) {
      const std::int64_t other_place = turn * (turn + 1) / 2;
      const auto value = [&](Variable v) -> std::int64_t {
        if (v.kind == Variable::Kind::kSymbol) return std::max<std::int64_t>(1, graph_.symbols[v.id].hint);
        const std::int64_t id = v.id, other = 7 * id % 5 + other_place * (1 + id % 3);
        if (v.kind == Variable::Kind::kValue) return other;
        // A clipped thread may begin at any result.
        if (v.id == found_.sliding_axis)
          return (found_.clipped ? 1 : found_.steps) * (kPlace + other_place) + point.step;
        if (point.axes)
          if (const auto at = std::ranges::find(*point.axes, v.id); at != point.axes->end())
            return point.elements[static_cast<std::size_t>(at - point.axes->begin())];
        return kPlace + other;
      };
      for (const IndexExpr& e : indices) places.push_back(evaluate(e, value));
    }
  }
  Places places_of_load(ExprId load, const SlidingWindowPoint& point) const {
    Places places;
    add_places(pool()[load].indices, point, places);
    return places;
  }
  // Rows of equal numbers have the same reduction result (row_key).
  Places places_of_row(ExprId reduction, std::int64_t step, std::int64_t row) const {
    const Axes slid{found_.slid.at(reduction)};
    Places places;
    for (const ExprId id : reachable(pool(), std::span(pool()[reduction].args.data(), 1)))
      if (pool()[id].op == ExprOp::kLoad || pool()[id].op == ExprOp::kIndex)
        add_places(pool()[id].indices, {step, &slid, {row}}, places);
    return places;
  }

  double fraction_of_distinct_rows(ExprId reduction, std::int64_t rows) const {
    std::set<Places> distinct;
    for (std::int64_t step = 0; step < found_.steps; ++step)
      for (std::int64_t row = 0; row < rows; ++row) distinct.insert(places_of_row(reduction, step, row));
    return static_cast<double>(distinct.size()) / static_cast<double>(rows * found_.steps);
  }

  double results() const { return static_cast<double>(value_at_hint(point_count(pool(), outputs()), graph_.symbols)); }

  // Instruction counts: per loaded element (position, load, mask, conversion), per combined element, per thread.
  static constexpr double kLoad = 3, kCombined = 1.3, kThread = 30, kFewThreads = 1024;

  // Predicted instructions. Infinite if the results share nothing and are few. Stops counting at `least`: the result is
  // then no less than that.
  double cost(double least) const {
    std::set<std::pair<ValueId, Places>> distinct;
    double combined = 0;
    bool shared = false;
    const auto load = [&](ExprId id, const SlidingWindowPoint& point) {
      shared = !distinct.emplace(pool()[id].source, places_of_load(id, point)).second || shared;
    };
    const auto add = [&](ExprId root, const SlidingWindowPoint& point) {
      for (const ExprId id : reachable(pool(), std::span(&root, 1)))
        if (pool()[id].op == ExprOp::kLoad && std::ranges::binary_search(found_.loads, id)) load(id, point);
    };
    const double waste = waste_of_steps();
    const auto so_far = [&] {
      return (kLoad * static_cast<double>(distinct.size()) + kCombined * combined + kThread) / found_.steps * waste;
    };
    for (const ExprId r : found_.reductions) {
      std::set<Places> rows;
      const auto slid = found_.slid.find(r);
      for (std::int64_t step = 0; step < found_.steps; ++step) {
        if (so_far() >= least) return so_far();
        const std::int64_t count = slid == found_.slid.end() ? 1 : *pool().extent(slid->second).as_constant();
        for (std::int64_t row = 0; row < count; ++row) {
          const bool alone = slid == found_.slid.end();
          combined += alone ? 0 : 1;
          if (!alone && !rows.insert(places_of_row(r, step, row)).second) {
            shared = true;
            continue;
          }
          for (const SlidingWindowPoint& p : points_of(found_, r, step, alone ? std::nullopt : std::optional(row))) {
            add(pool()[r].args[0], p);
            combined += 1;
          }
        }
      }
    }
    const std::vector<ExprId> epilogue = epilogue_loads();
    for (std::int64_t step = 0; step < found_.steps; ++step)
      for (const ExprId id : epilogue) load(id, {.step = step});
    if (!shared && results() / found_.steps < kFewThreads) return std::numeric_limits<double>::infinity();
    return so_far();
  }

  double waste_of_steps() const {
    const auto extent = static_cast<double>(value_at_hint(pool().extent(found_.sliding_axis), graph_.symbols));
    return std::ceil(extent / found_.steps) * found_.steps / extent;
  }

  // Loads outside of reductions.
  std::vector<ExprId> epilogue_loads() const {
    std::vector<ExprId> epilogue =
        reachable(pool(), roots_of(found_.kernel), [&](ExprId id) { return pool()[id].op == ExprOp::kReduce; });
    std::erase_if(epilogue, [&](ExprId id) { return !std::ranges::binary_search(found_.loads, id); });
    return epilogue;
  }

  // Predicted instructions with one result per thread.
  double plain_cost() const {
    double each = 0;
    for (const ExprId r : found_.reductions)
      each += (kLoad + kCombined) * static_cast<double>(*reduced_elements(pool(), r));
    if (found_.reductions.empty())
      for (const ExprId id : reachable(pool(), roots_of(found_.kernel)))
        if (pool()[id].op == ExprOp::kLoad) each += kLoad;
    return each + kThread;
  }

  void consider(std::uint32_t axis, double& least, std::optional<SlidingWindow>& best) {
    if (std::ranges::any_of(found_.reductions, [&](ExprId r) { return !depends_on(r, axis); })) return;
    const SlidingWindow before = found_;
    const double enough = 2.0 * target_.multiprocessors * SlidingWindow::kThreads;
    constexpr int kAlways = 4;
    for (const int steps : {4, 2, 5, 6, 7, 8}) {
      found_ = before;
      const std::int64_t extent = value_at_hint(pool().extent(axis), graph_.symbols);
      if (steps > extent || (steps > kAlways && results() / steps < enough)) continue;
      divide(axis, steps);
      if (!find_loads()) continue;
      std::ranges::sort(found_.loads);
      choose_slid();
      const double each = cost(least);
      if (each >= least) continue;
      least = each;
      best = found_;
      best->instructions = each * results();
    }
    found_ = before;
  }

  const Graph& graph_;
  const Target& target_;
  SlidingWindow found_;
  Dependences depends_;
};

// Whether there may be a window: reductions of few points, or without reductions several loads of one tensor. A quick
// necessary condition, because merging the planes of a kernel takes long.
bool may_slide(const Kernel& kernel) {
  std::set<std::uint32_t> loaded;
  bool reduces = false, loads_again = false;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kReduce) {
      const auto points = reduced_elements(kernel.pool, id);
      if (!points || *points > kMaxSlidingWindowPoints) return false;
      reduces = true;
    } else if (n.op == ExprOp::kLoad) {
      loads_again = !loaded.insert(n.source).second || loads_again;
    }
  }
  return reduces || loads_again;
}

}  // namespace

std::optional<SlidingWindow> find_sliding_window(const Kernel& kernel, const Graph& graph, const Target& target) {
  if (!may_slide(kernel)) return std::nullopt;
  return SlidingWindowFinder(kernel, graph, target).run();
}

}  // namespace fusec
