#include "schedule/convolution/nhwc_stencil.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/convolution/windows.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;
using NhwcStencilPoint = NhwcStencil::Point;

constexpr std::int64_t kMaxNhwcStencilPoints = 64;  // of a reduction
constexpr std::int64_t kMaxUnrolled = 16;           // points that are unrolled
constexpr std::int64_t kMostCombined = 80;          // for all results of a thread together
constexpr int kMaxNhwcStencilAccumulators = 64;     // per thread
constexpr std::int64_t kMostStaged = 16 << 10;

class NhwcStencilFinder {
 public:
  NhwcStencilFinder(const Kernel& kernel, const Graph& graph, const Target& target)
      : kernel_(kernel), graph_(graph), target_(target) {}

  std::optional<NhwcStencil> run() {
    if (!find_reductions()) return std::nullopt;
    const auto lane = contiguous_axis(kernel_);
    if (!lane) return std::nullopt;
    const int widest = widest_bits(*lane);
    found_.lanes = 128 / widest;
    const auto channels = kernel_.pool.extent(*lane).as_constant();
    found_.whole_vectors = channels && *channels % found_.lanes == 0;
    if (!channels) return std::nullopt;
    while (*channels % found_.lanes != 0) found_.lanes /= 2;
    if (found_.lanes * widest < 32 || found_.lanes == 1) return std::nullopt;
    LaneSplit split = with_lanes(kernel_, *lane, found_.lanes, found_.reductions);
    found_.kernel = std::move(split.kernel);
    const Axes& axes = found_.kernel.outputs[0].axes;
    found_.rest = {axes.begin(), axes.end() - 2};
    found_.vectors = split.vector, found_.lane = split.lane;
    depends_ = dependences(pool());
    if (!stores_vectors() || !find_loads()) return std::nullopt;
    choose_vectors_per_block(*channels / found_.lanes);
    choose_unrolled();
    choose_coarsening();
    for (CoarsenedAxis& walk : found_.coarsened_axes)
      walk.tiles =
          found_.kernel.pool.new_axis(simplify(ceil_div(pool().extent(walk.axis), walk.steps), pool().bounds()));
    return std::move(found_);
  }

 private:
  const ExprPool& pool() const { return found_.kernel.pool; }
  std::int64_t extent(std::uint32_t axis) const { return pool().extent(axis).as_constant().value_or(0); }

  // Requires reductions over the same few points, without nesting, that each depend on all output axes.
  bool find_reductions() {
    if (writes_half_bytes(kernel_) || kernel_.outputs[0].axes.empty()) return false;
    auto reductions = window_reductions(kernel_);
    if (!reductions || reductions->empty() || !share_axes(kernel_.pool, *reductions)) return false;
    found_.reductions = *std::move(reductions);
    if (std::ranges::any_of(found_.reductions, [&](ExprId r) { return bits_of_sum(kernel_.pool[r].type) > 32; }))
      return false;
    const auto points = reduced_elements(kernel_.pool, found_.reductions[0]);
    return points && *points > 1 && *points <= kMaxNhwcStencilPoints;
  }

  static int bits_of_sum(ScalarType type) {
    return type == ScalarType::kFloat64 || type == ScalarType::kInt64 || type == ScalarType::kUInt64 ? 64 : 32;
  }

  // Bits of the widest element along the lanes, over outputs and reduction operands.
  int widest_bits(std::uint32_t lane) const {
    int widest = 8;
    for (const KernelOutput& output : kernel_.outputs) widest = std::max(widest, bits(output.type.dtype));
    for (const ExprId r : found_.reductions)
      for (const ExprId id : reachable(kernel_.pool, std::span(&r, 1)))
        if (kernel_.pool[id].op == ExprOp::kLoad &&
            coefficient_of(position_of(graph_, kernel_.pool, id), {Variable::Kind::kAxis, lane}) == 1)
          widest = std::max(widest, bits(kernel_.pool[id].dtype));
    return widest;
  }

  // True if a vector along the lanes is whole 32-bit words.
  bool has_whole_words(DType dtype) const { return bits(dtype) * found_.lanes % 32 == 0; }

  bool is_vector(const IndexExpr& position, DType dtype) const {
    const Variable lane{Variable::Kind::kAxis, found_.lane};
    const int words = bits(dtype) * found_.lanes / 32;
    if (!has_whole_words(dtype) || coefficient_of(position, lane) != 1) return false;
    const int vectors_per_block = words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1;
    const IndexExpr first = simplify(position - IndexExpr::axis(found_.lane), pool().bounds());
    return !mentions(first, lane) &&
           proves_multiple_of(first, std::max(1, vectors_per_block * 32 / bits(dtype)), pool().bounds());
  }

  bool stores_vectors() const {
    return std::ranges::all_of(found_.kernel.outputs, [&](const KernelOutput& output) {
      return is_vector(position_of(pool(), output), output.type.dtype);
    });
  }

  bool depends_on(ExprId id, std::uint32_t axis) const { return std::ranges::binary_search(depends_[id], axis); }

  bool find_loads() {
    const Axes& summed = pool()[found_.reductions[0]].axes;
    bool some = false;
    for (const ExprId id : reachable(pool(), found_.reductions)) {
      const ExprNode& n = pool()[id];
      if (n.op != ExprOp::kLoad) continue;
      const bool at_point = std::ranges::any_of(summed, [&](std::uint32_t a) { return depends_on(id, a); });
      if (!at_point && !depends_on(id, found_.lane)) continue;
      const IndexExpr position = position_of(graph_, pool(), id);
      if (by_values(position)) return false;
      if (!depends_on(id, found_.lane)) continue;
      const bool of_channels = at_point && n.args[0] == kNoExpr &&
                               std::ranges::none_of(found_.rest, [&](auto a) { return depends_on(id, a); });
      if (of_channels && bits(n.dtype) >= 8 && has_whole_words(n.dtype)) {
        found_.loads.push_back({id, true});
        continue;
      }
      if (!is_vector(position, n.dtype)) return false;
      if (n.args[0] != kNoExpr && (depends_on(n.args[0], found_.lane) || !is_of_indices(pool(), n.args[0])))
        return false;
      if (!at_point) continue;
      found_.loads.push_back({id, false});
      some = true;
    }
    return some;
  }

  // Vectors of channels per block: whole memory lines if the channels allow, and a power of two to avoid bank
  // conflicts.
  void choose_vectors_per_block(std::int64_t vectors) {
    constexpr std::int64_t kFewest = 4, kMost = 8;
    std::int64_t best = 1;
    while (best < kMost && vectors % (2 * best) == 0) best *= 2;
    if (best < std::min(vectors, kFewest))
      while (best < std::min(vectors, kMost)) best *= 2;
    std::int64_t each = 0;  // staged bytes per vector
    for (const WindowLoad& w : found_.loads) {
      std::int64_t points = w.staged ? bits(pool()[w.load].dtype) * found_.lanes / 8 : 0;
      for (const std::uint32_t a : pool()[found_.reductions[0]].axes) points *= extent(a);
      each += points;
    }
    while (best > 1 && best * each > kMostStaged) best /= 2;
    found_.vectors_per_block = static_cast<int>(best);
  }

  // All expressions that determine which vector a load reads: positions and masks.
  std::vector<IndexExpr> tellers() const {
    std::vector<IndexExpr> all;
    for (const WindowLoad& w : found_.loads) {
      if (w.staged) continue;
      all.push_back(position_of(graph_, pool(), w.load));
      const ExprId guard = pool()[w.load].args[0];
      if (guard == kNoExpr) continue;
      for (const ExprId id : reachable(pool(), std::span(&guard, 1)))
        if (pool()[id].op == ExprOp::kIndex) all.push_back(pool()[id].indices[0]);
    }
    return all;
  }

  bool is_linear(std::uint32_t axis) const {
    return std::ranges::all_of(tellers_, [&](const IndexExpr& e) {
      return coefficient_of(e, {Variable::Kind::kAxis, axis}).has_value();
    });
  }

  // Unrolls the innermost reduction axes, up to a few points in total.
  void choose_unrolled() {
    tellers_ = tellers();
    std::int64_t points = 1;
    const Axes& axes = pool()[found_.reductions[0]].axes;
    bool all = true;
    for (std::size_t i = axes.size(); i-- > 0;) {
      all = all && is_linear(axes[i]) && points * extent(axes[i]) <= kMaxUnrolled;
      (all ? found_.unrolled_axes : found_.rolled_axes)
          .insert(all ? found_.unrolled_axes.begin() : found_.rolled_axes.begin(), axes[i]);
      if (all) points *= extent(axes[i]);
    }
  }

  // The number of different vectors that a thread reads.
  std::int64_t distinct_vectors() const {
    std::set<std::pair<ExprId, std::vector<std::int64_t>>> distinct;
    std::map<ExprId, IndexExpr> positions;
    for (const WindowLoad& w : found_.loads)
      if (!w.staged) positions.emplace(w.load, position_of(graph_, pool(), w.load));
    for (const NhwcStencilPoint& point : points_in_memory_order(found_, graph_))
      for (const auto& [load, position] : positions) distinct.emplace(load, vector_key(found_, load, position, point));
    return static_cast<std::int64_t>(distinct.size());
  }

  // Chooses the results of a thread with the most overlap of windows, but leaves enough threads for the device.
  void choose_coarsening() {
    std::int64_t unrolled_axes = 1;
    for (const std::uint32_t a : found_.unrolled_axes) unrolled_axes *= extent(a);
    Axes candidates;
    for (const std::uint32_t a : found_.rest)
      if (is_linear(a) && value_at_hint(pool().extent(a), graph_.symbols) > 1) candidates.push_back(a);
    const double vectors = static_cast<double>(
        value_at_hint(point_count(pool(), found_.rest) * pool().extent(found_.vectors), graph_.symbols));
    const double enough = 2.0 * target_.multiprocessors * NhwcStencil::kThreads;
    double best = static_cast<double>(distinct_vectors());
    std::vector<CoarsenedAxis> chosen;
    const auto consider = [&](std::vector<CoarsenedAxis> coarsened_axes) {
      double waste = 1;
      int steps = 1;
      for (CoarsenedAxis& w : coarsened_axes) {
        const IndexExpr& count = pool().extent(w.axis);
        const auto results = static_cast<double>(value_at_hint(count, graph_.symbols));
        if (results < w.steps) return;
        w.enough = range_of(count, pool().bounds()).min >= w.steps;
        waste *= std::ceil(results / w.steps) * w.steps / results;
        steps *= w.steps;
      }
      constexpr int kAlways = 4;
      if (steps * found_.lanes > kMaxNhwcStencilAccumulators || steps * unrolled_axes > kMostCombined) return;
      if (steps > kAlways && vectors / steps < enough) return;
      found_.coarsened_axes = coarsened_axes;
      const double each = static_cast<double>(distinct_vectors()) * waste / steps;
      if (each >= 0.98 * best) return;
      best = each;
      chosen = std::move(coarsened_axes);
    };
    for (std::size_t i = 0; i < candidates.size(); ++i)
      for (const int steps : {2, 4, 7, 8}) {
        consider({{candidates[i], steps}});
        for (std::size_t k = 0; k < i; ++k) consider({{candidates[k], 2}, {candidates[i], steps}});
      }
    found_.coarsened_axes = std::move(chosen);
    found_.overlapping = !found_.coarsened_axes.empty() || std::ranges::any_of(found_.loads, [&](const WindowLoad& w) {
      return w.staged || pool()[w.load].args[0] != kNoExpr;
    });
  }

  const Kernel& kernel_;
  const Graph& graph_;
  const Target& target_;
  NhwcStencil found_;
  Dependences depends_;
  std::vector<IndexExpr> tellers_;
};

}  // namespace

std::int64_t offset_from_first(const NhwcStencil& stencil, const IndexExpr& e, const NhwcStencilPoint& point) {
  std::int64_t growth = 0;
  const auto add = [&](std::uint32_t axis, std::int64_t at) {
    if (at != 0) growth += at * coefficient_of(e, {Variable::Kind::kAxis, axis}).value_or(0);
  };
  for (std::size_t i = 0; i < stencil.coarsened_axes.size(); ++i) add(stencil.coarsened_axes[i].axis, point[i]);
  for (std::size_t i = 0; i < stencil.unrolled_axes.size(); ++i)
    add(stencil.unrolled_axes[i], point[stencil.coarsened_axes.size() + i]);
  return growth;
}

std::vector<std::int64_t> vector_key(const NhwcStencil& stencil, ExprId load, const IndexExpr& position,
                                     const NhwcStencilPoint& point) {
  const ExprPool& pool = stencil.kernel.pool;
  std::vector<std::int64_t> all{offset_from_first(stencil, position, point)};
  if (const ExprId guard = pool[load].args[0]; guard != kNoExpr)
    for (const ExprId id : reachable(pool, std::span(&guard, 1)))
      if (pool[id].op == ExprOp::kIndex) all.push_back(offset_from_first(stencil, pool[id].indices[0], point));
  return all;
}

std::vector<NhwcStencilPoint> points_in_memory_order(const NhwcStencil& stencil, const Graph& graph) {
  std::vector<NhwcStencilPoint> points{{}};
  const auto extend = [&](std::int64_t count) {
    std::vector<NhwcStencilPoint> longer;
    for (const NhwcStencilPoint& p : points)
      for (std::int64_t i = 0; i < count; ++i) {
        longer.push_back(p);
        longer.back().push_back(i);
      }
    points = std::move(longer);
  };
  for (const CoarsenedAxis& walk : stencil.coarsened_axes) extend(walk.steps);
  for (const std::uint32_t a : stencil.unrolled_axes) extend(stencil.kernel.pool.extent(a).as_constant().value_or(1));
  const auto window = std::ranges::find_if(stencil.loads, [](const WindowLoad& w) { return !w.staged; });
  if (window == stencil.loads.end()) return points;
  const IndexExpr position = position_of(graph, stencil.kernel.pool, window->load);
  std::ranges::stable_sort(points, {},
                           [&](const NhwcStencilPoint& p) { return offset_from_first(stencil, position, p); });
  return points;
}

std::optional<NhwcStencil> find_nhwc_stencil(const Kernel& kernel, const Graph& graph, const Target& target) {
  return NhwcStencilFinder(kernel, graph, target).run();
}

}  // namespace fusec
