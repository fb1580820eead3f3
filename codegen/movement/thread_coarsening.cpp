#include "codegen/movement/thread_coarsening.h"

#include <algorithm>
#include <map>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "codegen/access/vector_access.h"
#include "codegen/access/vector_width.h"
#include "codegen/access/vectorized_loads.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostParts = 8;
constexpr std::size_t kMostOutputs = 16;
// Registers for what a thread loads, 12 vectors of 16 bytes: beyond that, fewer threads hide less.
constexpr int kMostLoadRegisters = 48;
// Of what loads and stores asked for before, or of their accesses: what is worth another axis in parts.
constexpr double kFewerSectorsCoarsened = 0.95, kFewerAccessesCoarsened = 0.9;

// Every part of an axis in turn, in one pool, where equal loads and values are one. Axis `at` is left out where its
// parts are single elements.
Kernel coarsened_along(const Kernel& kernel, std::size_t at, std::int64_t parts) {
  Kernel joined{.pool = ExprPool(kernel.pool.bounds()), .nodes = kernel.nodes};
  joined.exact_steps = kernel.exact_steps;
  joined.numerics = kernel.numerics;
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  const IndexExpr part = simplify(floor_div(kernel.pool.extent(axes[at]), parts), kernel.pool.bounds());
  std::vector<std::uint32_t> new_axes;
  std::vector<IndexExpr> values;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool single = i == at && part.is(1);
    if (!single) new_axes.push_back(joined.pool.new_axis(i == at ? part : kernel.pool.extent(axes[i])));
    values.push_back(single ? IndexExpr(0) : IndexExpr::axis(new_axes.back()));
  }
  for (std::int64_t place = 0; place < parts; ++place) {
    ExprCopier copier(kernel.pool, joined.pool);
    for (std::size_t i = 0; i < axes.size(); ++i) copier.axis[axes[i]] = i == at ? values[i] + part * place : values[i];
    for (const KernelOutput& output : kernel.outputs) {
      KernelOutput copy = output;
      copy.expr = copier.copy(output.expr);
      copy.axes = new_axes;
      for (IndexExpr& e : copy.index) e = simplify(copier.copy(e), joined.pool.bounds());
      joined.outputs.push_back(std::move(copy));
    }
    for (const NamedExpr& named : kernel.named) joined.named.push_back({copier.copy(named.expr), named.value});
  }
  return joined;
}

// Whatever its symbols are: what launches have to be asked for is for vectors, which are worth more.
bool divides_evenly(const IndexExpr& extent, std::int64_t parts) {
  return extent.constant_term() % parts == 0 &&
         std::ranges::all_of(extent.terms(), [&](const IndexTerm& term) { return term.coefficient % parts == 0; });
}

// What a kernel loads, with what decides which parts of its axes may have some of it in common.
class SharedLoads {
 public:
  SharedLoads(const Kernel& kernel, const Graph& graph) : kernel_(kernel), depends_(dependences(kernel.pool)) {
    for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
      if (kernel.pool[id].op == ExprOp::kLoad) loads_.push_back({id, position_of(graph, kernel.pool, id)});
  }

  // How many there are of all parts, if only those that stay the same along the axis are shared.
  std::size_t of_parts(std::uint32_t axis, std::int64_t parts) const {
    std::size_t count = 0;
    for (const Load& load : loads_) count += depends(load.id, axis) ? static_cast<std::size_t>(parts) : 1;
    return count;
  }

  // Results are the same all along the axis.
  bool repeat_along(std::uint32_t axis) const {
    return std::ranges::none_of(roots_of(kernel_), [&](ExprId root) { return depends(root, axis); });
  }

  // Some load is the same all along the axis.
  bool some_invariant_along(std::uint32_t axis) const {
    return std::ranges::any_of(loads_, [&](const Load& load) { return !depends(load.id, axis); });
  }

  // Do loads of some part read what others read in another one? Said too often where positions are not linear.
  bool may_overlap(std::uint32_t axis, const IndexExpr& part, std::int64_t parts) const {
    constexpr std::size_t kMostLoads = 64;
    if (loads_.size() > kMostLoads) return false;
    const Variable v{Variable::Kind::kAxis, axis};
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      if (!depends(loads_[i].id, axis)) continue;
      const auto step = coefficient_of(loads_[i].position, v);
      if (!step) return true;
      for (std::size_t j = 0; j < i; ++j) {
        if (kernel_.pool[loads_[i].id].source != kernel_.pool[loads_[j].id].source) continue;
        if (part.is(1)) return true;
        const IndexExpr apart = loads_[i].position - loads_[j].position;
        for (std::int64_t k = 1 - parts; *step != 0 && k < parts; ++k)
          if (k != 0 && apart == part * (k * *step)) return true;
      }
    }
    return false;
  }

 private:
  struct Load {
    ExprId id;
    IndexExpr position;
  };

  bool depends(ExprId id, std::uint32_t axis) const { return std::ranges::binary_search(depends_[id], axis); }

  const Kernel& kernel_;
  const Dependences depends_;
  std::vector<Load> loads_;
};

std::size_t count_loads(const Kernel& kernel) {
  return static_cast<std::size_t>(std::ranges::count_if(
      reachable(kernel.pool, roots_of(kernel)), [&](ExprId id) { return kernel.pool[id].op == ExprOp::kLoad; }));
}

// The greatest width, at most the wanted one, by which all results are stored in vectors; 0 where there is none.
int width_of_stores(const Kernel& kernel, const Graph& graph) {
  if (kernel.outputs[0].axes.empty()) return 0;
  const IndexExpr& inner = kernel.pool.extent(kernel.outputs[0].axes.back());
  for (int width = wanted_width(kernel, graph); width > 1; width /= 2) {
    if (!proves_multiple_of(inner, width, kernel.pool.bounds())) continue;
    const Kernel split = split_last_axis(kernel, width);
    const Bounds& bounds = split.pool.bounds();
    const bool whole = std::ranges::all_of(split.outputs, [&](const KernelOutput& output) {
      const IndexExpr at = simplify(flat_index(output.type.shape, output.index), bounds);
      return is_vector_position(at, output.axes.back(), width, output.type.dtype, bounds);
    });
    if (whole) return width;
  }
  return 0;
}

// A kernel some of whose axes are in parts, `times` outputs for each of the given one.
struct CoarsenedKernel {
  Kernel kernel;
  std::int64_t times = 1;
  int width = 1;
  double sectors = 0, accesses = 0;  // of loads, for a point of the given kernel
  bool in_vectors = false;
};

bool has_threads_enough(const CoarsenedKernel& candidate, const Graph& graph, const Target& target) {
  constexpr std::int64_t kThreadsEach = 128;
  const IndexExpr points = point_count(candidate.kernel.pool, candidate.kernel.outputs[0].axes);
  return value_at_hint(points, graph.symbols) / candidate.width >= target.multiprocessors * kThreadsEach;
}

// Nothing where there are more loads than so many.
std::optional<CoarsenedKernel> try_coarsening(const CoarsenedKernel& before, std::size_t axis, std::int64_t parts,
                                              std::size_t most_loads, const Graph& graph) {
  const Kernel joined = coarsened_along(before.kernel, axis, parts);
  if (count_loads(joined) > most_loads) return std::nullopt;
  CoarsenedKernel candidate{.kernel = merge_axes(joined, graph), .times = before.times * parts};
  candidate.width = width_of_stores(candidate.kernel, graph);
  if (candidate.width == 0 || registers_of_loads(candidate.kernel, candidate.width) > kMostLoadRegisters)
    return std::nullopt;
  const VectorizedLoads of_lanes = vectorize_loads(candidate.kernel, graph, candidate.width);
  candidate.in_vectors = of_lanes.apart.empty();
  candidate.sectors = sectors_of_loads(of_lanes, graph, candidate.width) / static_cast<double>(candidate.times);
  candidate.accesses = accesses_of_loads(of_lanes, candidate.width) / static_cast<double>(candidate.times);
  return candidate;
}

// In vectors, or else by fewer accesses of no more sectors. More parts that share nothing more are no better.
bool is_better(const CoarsenedKernel& candidate, const CoarsenedKernel& other) {
  constexpr double kFewerByMore = 0.95, kSame = 1.02;
  if (candidate.in_vectors != other.in_vectors) return candidate.in_vectors;
  return candidate.accesses < kFewerByMore * other.accesses && candidate.sectors < kSame * other.sectors;
}

// What makes an axis worth parts: that they read of one another's, or that all read the same, which caches have for
// those that come after the first.
enum class CoarseningReason { kOverlap, kInvariant };

std::optional<CoarsenedKernel> best_coarsening(const CoarsenedKernel& before, CoarseningReason reason,
                                               const Graph& graph, const Target& target) {
  const SharedLoads loads(before.kernel, graph);
  const Bounds& bounds = before.kernel.pool.bounds();
  const std::vector<std::uint32_t>& axes = before.kernel.outputs[0].axes;
  std::optional<CoarsenedKernel> best;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const IndexExpr& extent = before.kernel.pool.extent(axes[i]);
    const bool repeated = reason == CoarseningReason::kOverlap && loads.repeat_along(axes[i]);
    if (reason == CoarseningReason::kInvariant && (i + 1 == axes.size() || !loads.some_invariant_along(axes[i])))
      continue;
    for (std::int64_t parts = 2; parts <= kMostParts; ++parts) {
      if (before.kernel.outputs.size() * static_cast<std::size_t>(parts) > kMostOutputs) break;
      if (!divides_evenly(extent, parts)) continue;
      const IndexExpr part = simplify(floor_div(extent, parts), bounds);
      if (reason == CoarseningReason::kOverlap && !repeated && !loads.may_overlap(axes[i], part, parts)) continue;
      const std::size_t most_loads =
          loads.of_parts(axes[i], parts) - (reason == CoarseningReason::kOverlap && !repeated ? 1 : 0);
      auto candidate = try_coarsening(before, i, parts, most_loads, graph);
      if (!candidate || (best && !is_better(*candidate, *best))) continue;
      if (reason == CoarseningReason::kInvariant && !has_threads_enough(*candidate, graph, target)) break;
      best = std::move(candidate);
    }
  }
  return best;
}

}  // namespace

std::optional<ThreadCoarsening> coarsen_threads(const Kernel& kernel, const Graph& graph, const Target& target) {
  constexpr int kMostAxes = 2;
  if (kernel.outputs[0].axes.empty() || writes_half_bytes(kernel)) return std::nullopt;
  double bytes = 0;  // that are stored
  for (const KernelOutput& output : kernel.outputs) bytes += bits(output.type.dtype) / 8.0;
  const auto gains = [&](const CoarsenedKernel& next, const CoarsenedKernel& before) {
    return next.sectors + bytes / 32 <= kFewerSectorsCoarsened * (before.sectors + bytes / 32) ||
           (next.sectors <= before.sectors &&
            next.accesses + bytes / 16 <= kFewerAccessesCoarsened * (before.accesses + bytes / 16));
  };
  std::optional<CoarsenedKernel> found;
  const CoarsenedKernel given{.kernel = kernel};
  const auto take = [&](CoarseningReason reason) {
    auto next = best_coarsening(found ? *found : given, reason, graph, target);
    if (!next || (found && !gains(*next, *found))) return false;
    found = std::move(next);
    return true;
  };
  for (int i = 0; i < kMostAxes && take(CoarseningReason::kOverlap); ++i) {
  }
  take(CoarseningReason::kInvariant);
  if (!found) return std::nullopt;
  return ThreadCoarsening{.kernel = std::move(found->kernel),
                          .width = found->width,
                          .sectors = found->sectors,
                          .accesses = found->accesses,
                          .in_vectors = found->in_vectors};
}

}  // namespace fusec
