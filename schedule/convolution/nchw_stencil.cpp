#include "schedule/convolution/nchw_stencil.h"

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
#include "schedule/layout/memory_access.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

constexpr std::int64_t kMostTapsOfAxis = 32;              // taps along one axis
constexpr std::int64_t kMaxNchwStencilAccumulators = 32;  // per thread
constexpr std::int64_t kMaxNchwStencilShared = 40 << 10;
constexpr int kMaxNchwStencilThreads = 256;

// All index expressions of a value: positions of loads, and comparisons of masks.
std::vector<IndexExpr> indices_of(const ExprPool& pool, ExprId value) {
  std::vector<IndexExpr> all;
  for (const ExprId id : reachable(pool, std::span(&value, 1)))
    all.insert(all.end(), pool[id].indices.begin(), pool[id].indices.end());
  return all;
}

class NchwStencilFinder {
 public:
  NchwStencilFinder(Kernel kernel, const Graph& graph, const Target& target) : graph_(graph), target_(target) {
    found_.kernel = std::move(kernel);
  }

  std::optional<NchwStencil> run() {
    if (!find_reductions() || !find_columns()) return std::nullopt;
    depends_ = dependences(pool());
    find_rows();
    if (!find_values()) return std::nullopt;
    place_axes();
    if (!overlaps(found_.columns) && !found_.rows && !found_.member) return std::nullopt;
    choose_copies();
    if (!choose_tiles()) return std::nullopt;
    make_vectors();
    return std::move(found_);
  }

 private:
  const ExprPool& pool() const { return found_.kernel.pool; }
  const Axes& results() const { return found_.kernel.outputs[0].axes; }
  const Axes& summed() const { return pool()[found_.reductions[0]].axes; }
  double at_hint(const IndexExpr& e) const { return static_cast<double>(value_at_hint(e, graph_.symbols)); }
  std::int64_t extent(std::uint32_t a) const { return pool().extent(a).as_constant().value_or(0); }
  bool depends_on(ExprId id, std::uint32_t a) const { return std::ranges::binary_search(depends_[id], a); }

  // Requires reductions over the same points, without nesting.
  bool find_reductions() {
    for (const KernelOutput& output : found_.kernel.outputs)
      if (output.axes != results() || bits(output.type.dtype) < 8) return false;
    for (const ExprId id : reachable(pool(), roots_of(found_.kernel)))
      if (pool()[id].op == ExprOp::kLoad && std::ranges::any_of(pool()[id].indices, by_values)) return false;
    auto reductions = window_reductions(found_.kernel);
    if (!reductions || reductions->empty() || !share_axes(pool(), *reductions)) return false;
    found_.reductions = *std::move(reductions);
    return std::ranges::all_of(found_.reductions,
                               [&](ExprId id) {
                                 const ScalarType type = pool()[id].type;
                                 return type == ScalarType::kFloat32 || type == ScalarType::kInt32;
                               }) &&
           std::ranges::all_of(summed(), [&](std::uint32_t a) { return pool().extent(a).as_constant().has_value(); });
  }

  // Finds the contiguous axis of the first output, with the tap that is contiguous in a load.
  bool find_columns() {
    const KernelOutput& output = found_.kernel.outputs[0];
    const IndexExpr at = position_of(pool(), output);
    for (const ExprId load : loads()) {
      const IndexExpr position = position_of(graph_, pool(), load);
      for (const std::uint32_t result : results())
        for (const std::uint32_t tap : summed()) {
          const auto window = window_of(load, result, tap);
          if (!window || coefficient_of(at, axis_variable(result)) != 1) continue;
          if (coefficient_of(position, axis_variable(result)) != window->stride) continue;
          found_.columns = *window;
          return true;
        }
    }
    return false;
  }

  // Picks the innermost pair of several.
  void find_rows() {
    for (const ExprId load : loads())
      for (const std::uint32_t result : results())
        for (const std::uint32_t tap : summed()) {
          if (result == found_.columns.result || tap == found_.columns.tap) continue;
          if (const auto window = window_of(load, result, tap); window && overlaps(*window)) found_.rows = window;
        }
  }

  // True if neighbouring results read the same elements.
  static bool overlaps(const StencilAxis& w) { return w.taps > 1 && w.stride <= (w.taps - 1) * w.dilation; }

  std::vector<ExprId> loads() const {
    std::vector<ExprId> found;
    for (const ExprId id : reachable(pool(), found_.reductions))
      if (pool()[id].op == ExprOp::kLoad) found.push_back(id);
    return found;
  }

  // The staged input uses indices with one of result and tap fixed.
  std::optional<StencilAxis> window_of(ExprId load, std::uint32_t result, std::uint32_t tap) const {
    const auto window = fusec::window_of(pool(), pool()[load].indices, result, tap);
    if (!window || (window->stride != 1 && window->dilation != 1)) return std::nullopt;
    return window->taps <= kMostTapsOfAxis && !pool().extent(result).is(1) ? window : std::nullopt;
  }

  bool is_of_results(ExprId id) const {
    return depends_on(id, found_.columns.result) || (found_.rows && depends_on(id, found_.rows->result));
  }
  bool is_of_points(ExprId id) const {
    return std::ranges::any_of(summed(), [&](std::uint32_t a) { return depends_on(id, a); });
  }

  // True for a value that depends only on the input position, for whichever result and tap.
  bool is_of_places(ExprId id) const {
    if (pool()[id].type != ScalarType::kFloat32 && pool()[id].type != ScalarType::kInt32) return false;
    return std::ranges::all_of(indices_of(pool(), id), [&](const IndexExpr& e) {
      return moves_along(e, found_.columns) && (!found_.rows || moves_along(e, *found_.rows));
    });
  }

  // Walks down from the accumulators: finds the largest values that depend on input positions alone (staged), and those
  // that depend on taps and channels alone (weights).
  bool find_values() {
    std::vector<ExprId> left;
    std::set<ExprId> seen;
    for (const ExprId r : found_.reductions) left.push_back(pool()[r].args[0]);
    while (!left.empty()) {
      const ExprId id = left.back();
      left.pop_back();
      if (id == kNoExpr || !seen.insert(id).second || depends_[id].empty()) continue;
      const ExprNode& n = pool()[id];
      if (!is_of_results(id)) {
        if (n.type != ScalarType::kFloat32 && n.type != ScalarType::kInt32) return false;
        found_.weights.push_back(id);
      } else if (is_of_places(id)) {
        found_.staged.push_back(id);
      } else if (n.op == ExprOp::kLoad || n.op == ExprOp::kIndex) {
        return false;
      } else {
        left.insert(left.end(), n.args.begin(), n.args.end());
      }
    }
    std::ranges::sort(found_.staged);
    std::ranges::sort(found_.weights);
    constexpr std::size_t kMost = 4;
    return !found_.staged.empty() && found_.staged.size() + found_.weights.size() <= kMost;
  }

  // The largest result axis on which the staged values do not depend becomes `member`: a thread has all its elements.
  void place_axes() {
    for (const std::uint32_t a : summed())
      if (a != found_.columns.tap && (!found_.rows || a != found_.rows->tap)) found_.rolled_axes.push_back(a);
    for (const std::uint32_t a : results()) {
      if (a == found_.columns.result || (found_.rows && a == found_.rows->result)) continue;
      const std::int64_t count = extent(a);
      const bool alone = std::ranges::none_of(found_.staged, [&](ExprId id) { return depends_on(id, a); });
      if (alone && count > 1 && count <= kMostMembers && (!found_.member || count > extent(*found_.member)))
        found_.member = a;
    }
    for (const std::uint32_t a : results())
      if (a != found_.columns.result && (!found_.rows || a != found_.rows->result) && a != found_.member)
        found_.planes.push_back(a);
  }
  static constexpr std::int64_t kMostMembers = 8;

  // Copies columns by vectors of up to four elements, if these are always masked together.
  void choose_copies() {
    if (found_.staged.size() != 1) return;
    for (const int points_per_stage : {4, 2})
      if (const auto before = vectors_begin(found_.staged[0], points_per_stage)) {
        found_.copy_width = points_per_stage;
        found_.before = *before;
        return;
      }
  }

  // A block starts at any multiple of that many results.
  std::optional<int> vectors_begin(ExprId staged, int points_per_stage) const {
    const StencilAxis& w = found_.columns;
    Bounds bounds = pool().bounds();
    const auto number = static_cast<std::uint32_t>(bounds.axes.size());
    bounds.axes.emplace_back(std::int64_t{1} << 24);
    // The index at the block's first position (`together` * number) and beyond.
    const auto at_first = [&](const IndexExpr& e, std::int64_t further) {
      const std::int64_t step = coefficient_of(e, axis_variable(w.result)).value_or(0) / w.stride;
      const IndexExpr rest = substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
        if (v == axis_variable(w.result) || v == axis_variable(w.tap)) return IndexExpr(0);
        return std::nullopt;
      });
      return simplify(rest + step * (IndexExpr::axis(number) * points_per_stage + further), bounds);
    };
    std::optional<int> before;
    for (const ExprId id : reachable(pool(), std::span(&staged, 1))) {
      const ExprNode& n = pool()[id];
      if (n.op != ExprOp::kLoad) continue;
      const IndexExpr position = position_of(graph_, pool(), id);
      const auto step = coefficient_of(position, axis_variable(w.result));
      if (step == 0 && coefficient_of(position, axis_variable(w.tap)) == 0) continue;
      if (step != w.stride || bits(n.dtype) < 8 || bits(n.dtype) > 32) return std::nullopt;
      for (int further = 0; further < points_per_stage; ++further)
        if (proves_multiple_of(at_first(position, -further), points_per_stage, bounds)) {
          if (before && *before != further) return std::nullopt;
          before = further;
        }
      if (!before || !proves_multiple_of(at_first(position, -*before), points_per_stage, bounds)) return std::nullopt;
    }
    if (!before) return std::nullopt;
    for (const ExprId id : reachable(pool(), std::span(&staged, 1))) {
      if (pool()[id].type != ScalarType::kBool || !depends_on_columns(id)) continue;
      if (pool()[id].op == ExprOp::kAnd || pool()[id].op == ExprOp::kOr || pool()[id].op == ExprOp::kNot) continue;
      const auto compared = index_comparison(pool(), id);
      if (!compared) return std::nullopt;
      // The mask changes where this is 0: a lower or an upper limit.
      const IndexExpr change =
          at_first(compared->difference, -*before) - compared->bound - (compared->at_least ? 0 : 1);
      const auto step = coefficient_of(compared->difference, axis_variable(w.result));
      if (step != w.stride || !proves_multiple_of(change, points_per_stage, bounds)) return std::nullopt;
    }
    return before;
  }

  bool depends_on_columns(ExprId id) const {
    return depends_on(id, found_.columns.result) || depends_on(id, found_.columns.tap);
  }

  // Results per thread for which the threads' vectors have no bank conflicts.
  int columns_of_thread() const {
    const std::int64_t stride = found_.columns.stride;
    for (const int columns : {4, 2, 1})
      if (columns * stride % 4 == 0 && columns * stride / 4 % 2 == 1) return columns;
    return 4;
  }

  bool choose_tiles() {
    const double columns = at_hint(pool().extent(found_.columns.result));
    const double rows = found_.rows ? at_hint(pool().extent(found_.rows->result)) : 1;
    const double planes = at_hint(point_count(pool(), found_.planes));
    std::vector<std::pair<double, NchwStencilTiles>> ranked;
    NchwStencilTiles t;
    t.columns = columns_of_thread();
    for (const int of_thread : {4, 2, 1}) {
      t.rows = of_thread;
      if ((!found_.rows || rows < of_thread) && of_thread > 1) continue;
      if (of_thread * t.columns * found_.members() > kMaxNchwStencilAccumulators && of_thread > 1) continue;
      for (const int thread_columns : {1, 2, 4, 8, 16, 24, 32})
        for (const int thread_rows : divisions(std::ceil(rows / t.rows)))
          for (const int of_block : {1, 2, 4, 8, 16, 32}) {
            t.thread_columns = thread_columns, t.thread_rows = thread_rows, t.planes = of_block;
            if (t.threads() > kMaxNchwStencilThreads || (of_block > 1 && of_block > planes)) continue;
            found_.tiles = t;
            if (choose_lines()) ranked.emplace_back(predict(columns, rows, planes), found_.tiles);
          }
    }
    if (ranked.empty()) return false;
    std::ranges::stable_sort(ranked, {}, [](const auto& way) { return way.first; });
    constexpr std::size_t kTried = 12;
    constexpr double kAlike = 1.2;
    std::optional<NchwStencilTiles> chosen;
    for (std::size_t i = 0; i < std::min(kTried, ranked.size()) && !chosen; ++i) {
      found_.tiles = ranked[i].second;
      if (ranked[i].first < kAlike * ranked[0].first && avoid_conflicts()) chosen = found_.tiles;
    }
    found_.tiles = ranked[0].second;
    if (chosen)
      found_.tiles = *chosen;
    else
      avoid_conflicts();
    predict(columns, rows, planes);
    return true;
  }

  // Thread counts that divide the extent evenly over one block, two blocks, and so on.
  static std::vector<int> divisions(double threads) {
    std::vector<int> found;
    for (int blocks = 1; blocks <= 16; ++blocks) {
      const int of_block = static_cast<int>(std::ceil(threads / blocks));
      if (of_block <= kMaxNchwStencilThreads && (found.empty() || found.back() != of_block)) found.push_back(of_block);
    }
    return found;
  }

  // Chooses the strides of lines and planes in shared memory, and the points of looped axes per stage.
  bool choose_lines() {
    NchwStencilTiles& t = found_.tiles;
    const std::int64_t read = found_.columns.stride * (t.block_columns() - t.columns) + found_.before / 4 * 4 +
                              found_.elements_per_thread_line();
    t.line = static_cast<int>((std::max(found_.copies() * found_.copy_width, read) + 3) / 4 * 4);
    t.plane = static_cast<int>(t.line * found_.block_height());
    for (std::int64_t points_per_stage = found_.points(); points_per_stage > 0; --points_per_stage) {
      if (found_.points() % points_per_stage != 0) continue;
      t.points_per_stage = static_cast<int>(points_per_stage);
      if (found_.shared_bytes() <= kMaxNchwStencilShared) return true;
    }
    return false;
  }

  // A model to compare tile sizes: cycles of the busiest multiprocessor (128 lanes).
  double predict(double columns, double rows, double planes) {
    const NchwStencilTiles& t = found_.tiles;
    constexpr double kCopy = 13, kVectorCopy = 18, kElement = 2.5, kStore = 3, kBegin = 110, kPlane = 14;
    const auto copies = static_cast<double>(found_.copies()), height = static_cast<double>(found_.block_height());
    const double threads = t.threads();
    const double points = static_cast<double>(found_.points()), members = static_cast<double>(found_.members());
    const double of_line = found_.copy_width == 1 ? kCopy : kVectorCopy + kElement * found_.copy_width;
    const double lines = std::max(1.0, std::min(height, std::floor(threads / copies)));
    const double planes_at_once = std::max(1.0, std::floor(threads / (lines * copies)));
    const double rounds = std::ceil(t.planes / planes_at_once) * std::ceil(copies / threads);
    const double staging = static_cast<double>(found_.staged.size()) * rounds *
                           (kPlane + points * (kPlane + std::ceil(height / lines) * of_line));
    const auto taps = static_cast<double>(found_.taps());
    const double weights = static_cast<double>(found_.weight_elements() / t.points_per_stage) * points / threads * 10;
    const double lines_of_thread =
        found_.rows ? static_cast<double>(std::min(found_.rows->reach(t.rows), found_.rows->taps * t.rows)) : 1;
    const double adding = points * (lines_of_thread * static_cast<double>(found_.elements_per_thread_line()) / 4 +
                                    (found_.weights.empty() ? 0 : taps * (members >= 4 ? members / 4 : members)) +
                                    taps * members * t.rows * t.columns);
    const double ends = t.rows * members * (kStore * t.columns + 4);
    const double of_block = threads * (kBegin + staging + weights + adding + ends);
    found_.blocks =
        std::ceil(columns / t.block_columns()) * std::ceil(rows / t.block_rows()) * std::ceil(planes / t.planes);
    found_.instructions = found_.blocks * of_block;
    const double waves = std::ceil(found_.blocks / target_.multiprocessors);
    // Few warps do not saturate a multiprocessor.
    const double warps = std::min(8.0, threads / 32 * waves);
    const double busiest = waves * of_block / 128 / (0.45 + 0.55 * warps / 8);
    return busiest + found_.instructions / 128 / target_.multiprocessors;  // tie-break: instructions of all threads
  }

  int conflicts() const {
    const NchwStencilTiles& t = found_.tiles;
    std::vector<std::int64_t> loads, stores;  // addresses
    const std::int64_t copies = std::min<std::int64_t>(found_.copies(), t.threads());
    const std::int64_t lines = std::max<std::int64_t>(1, std::min(found_.block_height(), t.threads() / copies));
    const std::int64_t planes =
        std::max<std::int64_t>(1, std::min<std::int64_t>(t.planes, t.threads() / (copies * lines)));
    for (std::int64_t thread = 0; thread < t.threads(); ++thread) {
      const std::int64_t column = thread % t.thread_columns, row = thread / t.thread_columns % t.thread_rows;
      const std::int64_t plane = thread / (t.thread_columns * t.thread_rows), points = t.points_per_stage;
      if (plane < t.planes)
        loads.push_back(4 *
                        (plane * points * t.plane + row * t.rows * (found_.rows ? found_.rows->stride : 0) * t.line +
                         column * t.columns * found_.columns.stride));
      if (thread < copies * lines * planes)
        stores.push_back(4 * (thread / (copies * lines) * points * t.plane + thread / copies % lines * t.line +
                              thread % copies * found_.copy_width));
    }
    return 4 * count_bank_conflicts(loads, 16) + count_bank_conflicts(stores, 4 * found_.copy_width);
  }

  // Pads lines and planes to avoid bank conflicts. Returns whether none are left.
  bool avoid_conflicts() {
    NchwStencilTiles& t = found_.tiles;
    const NchwStencilTiles narrow = t;
    NchwStencilTiles best = t;
    int fewest = conflicts();
    for (int line = narrow.line; line < narrow.line + 32 && fewest > 0; line += 4)
      for (int more = 0; more < (t.planes > 1 ? 32 : 4) && fewest > 0; more += 4) {
        t.line = line;
        t.plane = static_cast<int>(line * found_.block_height()) + more;
        if (found_.shared_bytes() > kMaxNchwStencilShared) continue;
        if (const int now = conflicts(); now < fewest) {
          fewest = now;
          best = t;
        }
      }
    t = best;
    return fewest == 0;
  }

  void make_vectors() {
    std::vector<ExprId> follow;
    for (const auto* values : {&found_.reductions, &found_.staged, &found_.weights})
      follow.insert(follow.end(), values->begin(), values->end());
    found_.vectors = with_lanes(found_.kernel, found_.columns.result, found_.tiles.columns, follow);
    auto from = follow.begin();
    const auto take = [&](const std::vector<ExprId>& values) {
      const std::vector<ExprId> used(from, from + static_cast<std::ptrdiff_t>(values.size()));
      from += static_cast<std::ptrdiff_t>(values.size());
      return used;
    };
    found_.reductions_of_vectors = take(found_.reductions);
    found_.staged_of_vectors = take(found_.staged);
    found_.weights_of_vectors = take(found_.weights);
  }

  const Graph& graph_;
  const Target& target_;
  NchwStencil found_;
  Dependences depends_;
};

}  // namespace

std::int64_t NchwStencil::points() const {
  std::int64_t count = 1;
  for (const std::uint32_t a : rolled_axes) count *= *kernel.pool.extent(a).as_constant();
  return count;
}

std::int64_t NchwStencil::weights_per_plane() const {
  const std::int64_t elements = tiles.points_per_stage * members() * taps(),
                     points_per_stage = members_per_weight_vector();
  const std::int64_t loads = (elements + points_per_stage - 1) / points_per_stage, served = 32 / points_per_stage;
  const std::int64_t threads = std::int64_t{tiles.thread_columns} * tiles.thread_rows;
  std::vector<std::int64_t> addresses;  // of each plane's first weights
  const std::int64_t several = std::min<std::int64_t>(tiles.planes, (served + threads - 1) / threads);
  for (std::int64_t plane = 0; plane < several; ++plane) addresses.push_back(4 * plane * loads * points_per_stage);
  const bool apart = count_bank_conflicts(addresses, static_cast<int>(4 * points_per_stage)) == 0;
  return apart ? loads * points_per_stage : (loads / 2 * 2 + 1) * points_per_stage;
}

std::int64_t NchwStencil::shared_bytes() const {
  return 4 * (static_cast<std::int64_t>(staged.size()) * tile_elements() +
              static_cast<std::int64_t>(weights.size()) * weight_elements());
}

std::optional<NchwStencil> find_nchw_stencil(const Kernel& kernel, const Graph& graph, const Target& target) {
  std::optional<Kernel> grouped = with_groups_as_axis(kernel);
  return NchwStencilFinder(grouped ? *std::move(grouped) : kernel, graph, target).run();
}

}  // namespace fusec
