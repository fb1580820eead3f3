#include "codegen/movement/unaligned_pointwise.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "codegen/access/vector_access.h"
#include "codegen/access/vectorized_loads.h"
#include "codegen/movement/split_axes.h"
#include "codegen/movement/unaligned_pointwise_emitter.h"
#include "codegen/movement/unaligned_pointwise_plan.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"
#include "schedule/layout/memory_access.h"
#include "schedule/movement/access_samples.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

// So many points that their bytes take longer than one thread's instructions: with fewer, a thread for each is better
// than windows that begin anywhere.
constexpr std::int64_t kManyPoints = 1 << 13;

// Accesses for `width` points by vectors of `usual` elements as they lie, and how many loads are of single elements.
std::pair<std::int64_t, int> vectorized_cost(const Kernel& merged, const Graph& graph, int usual, int width) {
  const VectorizedLoads loads = vectorize_loads(merged, graph, usual);
  const ExprPool& pool = loads.kernel.pool;
  const std::uint32_t last = loads.kernel.outputs[0].axes.back();
  std::int64_t cost = 0;
  const auto add = [&](bool vector, DType dtype) {
    cost += vector ? width / usual * std::max(1, bits(dtype) * usual / 128) : width;
  };
  for (const KernelOutput& output : loads.kernel.outputs) {
    const IndexExpr at = position_of(pool, output);
    add(usual > 1 && is_vector_position(at, last, usual, output.type.dtype, pool.bounds()), output.type.dtype);
  }
  for (const ExprId id : loads.vectors) add(true, pool[id].dtype);
  for (const ExprId id : loads.apart) {
    const ExprNode& n = pool[id];
    const IndexExpr at = position_of(graph, pool, id);
    const auto step = coefficient_of(at, axis_variable(last));
    if (usual > 1 && step && std::abs(*step) > 1) cost += width;  // twice the sectors
    add(false, n.dtype);
  }
  return {cost, static_cast<int>(loads.apart.size())};
}

// x[(j + c) % n] as what it is before and behind the end, where c is no more than n. Nothing where there is no such
// load.
std::optional<Kernel> without_remainders(const Kernel& kernel) {
  Kernel extended = kernel;
  ExprPool& pool = extended.pool;
  std::map<ExprId, ExprId> replaced;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    if (kernel.pool[id].op != ExprOp::kLoad) continue;
    const ExprNode n = kernel.pool[id];
    // The first remainder of each dimension's index; there is seldom another one.
    for (std::size_t d = 0; d < n.indices.size(); ++d) {
      const auto terms = n.indices[d].terms();
      const auto at = std::ranges::find_if(terms, [&](const IndexTerm& term) {
        return term.factors.size() == 1 && term.factors[0]->kind == IndexAtom::Kind::kMod;
      });
      if (at == terms.end()) continue;
      const IndexExpr a = at->factors[0]->a, b = at->factors[0]->b;
      const IndexExpr others = n.indices[d] - from_terms({*at}, 0);
      if (!proves_nonnegative(a, pool.bounds()) || !proves_less(a, b + b, pool.bounds())) continue;
      const ExprId before = pool.less(a, b), behind = pool.nonnegative(a - b);
      const auto load = [&](const IndexExpr& place, ExprId guard) {
        std::vector<IndexExpr> indices = n.indices;
        indices[d] = simplify(others + place * IndexExpr(at->coefficient), pool.bounds());
        return pool.load(n.source, n.dtype, std::move(indices),
                         n.args[0] == kNoExpr ? guard : pool.binary(ExprOp::kAnd, n.args[0], guard));
      };
      replaced[id] = pool.select(before, load(a, before), load(a - b, behind));
      break;
    }
  }
  if (replaced.empty()) return std::nullopt;
  return change_axes(extended, [&](ExprPool& to, ExprCopier& copier) {
    copier.replacement = [&](ExprId load) {
      const auto at = replaced.find(load);
      return at == replaced.end() ? kNoExpr : at->second;
    };
    return same_axes(extended, to);
  });
}

// All axes as one, where that is possible.
Kernel flat(const Kernel& merged) {
  Kernel kernel = merged;
  while (kernel.outputs[0].axes.size() > 1) {
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    if (range_of(kernel.pool.extent(axes.back()), kernel.pool.bounds()).min < 1) break;
    kernel = merge_pair(kernel, axes.size() - 2);
  }
  return kernel;
}

// A plan's windows as some warps read them.
class UnalignedLoadSamples {
 public:
  UnalignedLoadSamples(const UnalignedPlan& plan, const Graph& graph)
      : plan_(plan), samples_(plan.kernel, graph), depends_(dependences(plan.kernel.pool)) {
    groups_ = std::max<std::int64_t>(1, samples_.hint(plan.groups));
  }

  double sectors_per_point() {
    std::int64_t sectors = 0;
    for (int i = 0; i < kSampledWarps; ++i) {
      const std::int64_t first =
          groups_ < kWarpLanes ? 0 : (i * 618 + 7) % 1000 * (groups_ / kWarpLanes) / 1000 * kWarpLanes;
      for (std::size_t r = 0; r < plan_.reads.size(); ++r) {
        if (is_read_before(r) || samples_.is_small_table(plan_.reads[r].window.load)) continue;
        sectors += sectors_of(plan_.reads[r], first, false);
        if (plan_.reads[r].next_row) sectors += sectors_of(plan_.reads[r], first, true);
      }
      for (const ExprId id : reachable(plan_.kernel.pool, roots_of(plan_.kernel)))
        if (plan_.kernel.pool[id].op == ExprOp::kLoad && !is_read(id) && !samples_.is_small_table(id))
          sectors += sectors_of_scalar_load(id, first);
    }
    return static_cast<double>(sectors) / (kSampledWarps * kWarpLanes * plan_.width);
  }

 private:
  static constexpr int kSampledWarps = 6;

  bool is_read(ExprId load) const {
    return std::ranges::any_of(plan_.reads, [&](const UnalignedPlan::Read& read) { return read.window.load == load; });
  }

  // Loads of the same words.
  bool is_read_before(std::size_t r) const {
    const ExprPool& pool = plan_.kernel.pool;
    const UnalignedPlan::Read& read = plan_.reads[r];
    return std::ranges::any_of(plan_.reads.begin(), plan_.reads.begin() + static_cast<std::ptrdiff_t>(r),
                               [&](const UnalignedPlan::Read& other) {
                                 return pool[other.window.load].source == pool[read.window.load].source &&
                                        other.window.first == read.window.first &&
                                        other.window.words == read.window.words &&
                                        pool[other.window.load].args[0] == pool[read.window.load].args[0];
                               });
  }

  // Where lanes of a group are: false where it has none of the next row.
  bool move_to(std::int64_t group, int lane, bool later) {
    if (group >= groups_) return false;
    samples_.set(plan_.lane, lane);
    samples_.set(plan_.group, group);
    std::int64_t rest = group;
    if (plan_.crosses_rows) {
      const std::int64_t length = std::max<std::int64_t>(1, samples_.hint(plan_.row_length));
      const std::int64_t row = group * plan_.width / length, column = group * plan_.width % length;
      if (later && length - column >= plan_.width) return false;
      samples_.set(plan_.column, later ? column - length : column);
      rest = later ? row + 1 : row;
    } else {
      const std::int64_t of_row = std::max<std::int64_t>(1, samples_.hint(plan_.kernel.pool.extent(plan_.group)));
      samples_.set(plan_.group, group % of_row);
      rest = group / of_row;
    }
    for (std::size_t i = plan_.outer.size(); i-- > 0;) {
      const std::int64_t extent = std::max<std::int64_t>(1, samples_.hint(plan_.kernel.pool.extent(plan_.outer[i])));
      samples_.set(plan_.outer[i], rest % extent);
      rest /= extent;
    }
    return true;
  }

  std::int64_t sectors_of(const UnalignedPlan::Read& read, std::int64_t first, bool later) {
    const ExprNode& n = plan_.kernel.pool[read.window.load];
    const std::int64_t bytes = bits(n.dtype) / 8, size = std::int64_t{4} * read.window.words;
    std::vector<std::int64_t> places, behind;
    std::int64_t after = -1;  // where a window begins that is the next thread's
    for (std::int64_t group = first + kWarpLanes; group-- > first;) {
      bool wanted = move_to(group, 0, later);
      if (wanted && n.args[0] != kNoExpr) {
        wanted = samples_.holds(n.args[0]);
        move_to(group, plan_.width - 1, later);
        wanted = wanted || samples_.holds(n.args[0]);
        move_to(group, 0, later);
      }
      if (!wanted) {
        after = -1;
        continue;
      }
      const std::int64_t at = samples_.value(read.window.first) * bytes;
      const std::int64_t from = at & ~std::int64_t{15};
      for (std::int64_t at_byte = from; at_byte < from + size; at_byte += 16) places.push_back(at_byte);
      if (!read.window.aligned && at != from && after != from + size) behind.push_back(from + size);
      after = from;
    }
    return count_sectors(places) + count_sectors(behind);
  }

  std::int64_t sectors_of_scalar_load(ExprId load, std::int64_t first) {
    const std::int64_t bytes = std::max(1, bits(plan_.kernel.pool[load].dtype) / 8);
    std::int64_t sectors = 0;
    const bool of_lanes = std::ranges::binary_search(depends_[load], plan_.lane) ||
                          (plan_.crosses_rows && std::ranges::binary_search(depends_[load], plan_.column));
    for (int lane = 0; lane < (of_lanes ? plan_.width : 1); ++lane) {
      std::vector<std::int64_t> places;
      for (std::int64_t group = first; group < first + kWarpLanes; ++group)
        if (move_to(group, lane, false))
          if (const auto at = samples_.position(load)) places.push_back(*at * bytes);
      sectors += count_sectors(places);
    }
    return sectors;
  }

  const UnalignedPlan& plan_;
  AccessSamples samples_;
  const Dependences depends_;
  std::int64_t groups_ = 1;
};

// All of it as it lies in memory, by threads of one row.
bool reads_vectors(const UnalignedPlan& plan) {
  return !plan.crosses_rows &&
         std::ranges::all_of(plan.reads, [](const UnalignedPlan::Read& r) { return r.window.aligned; });
}

bool reads_some_strided(const UnalignedPlan& plan) {
  return std::ranges::any_of(plan.reads, [&](const UnalignedPlan::Read& r) {
    const auto step = coefficient_of(r.window.element, axis_variable(plan.lane));
    return step && std::abs(*step) > 1;
  });
}

}  // namespace

std::optional<UnalignedChoice> choose_unaligned_loads(const Kernel& kernel, const Kernel& merged, const Graph& graph,
                                                      int width, int usual_width) {
  if (width < 2 || merged.outputs[0].axes.empty() || writes_half_bytes(kernel)) return std::nullopt;
  std::int64_t least = 0;
  int scalar_loads = 0;
  std::tie(least, scalar_loads) = vectorized_cost(merged, graph, usual_width, width);
  if (scalar_loads == 0 && usual_width == width) return std::nullopt;  // whole vectors are the least
  std::optional<UnalignedPlan> best;
  std::optional<Kernel> of_best;
  bool is_of_vectors = false;  // the best one so far
  const auto consider_lanes = [&](const Kernel& candidate, int lanes) {
    auto plan = plan_unaligned_loads(candidate, graph, lanes);
    if (!plan || plan->reads.empty()) return;
    const bool aligned = reads_vectors(*plan);
    // Fewer lanes are for what takes 16 bytes of what it reads, or nearly so, though rows are no multiples of more.
    if (lanes < width && !(aligned && reads_some_strided(*plan))) return;
    const bool better = lanes < width && !is_of_vectors;
    plan->cost *= width / lanes;
    if (!better && (plan->cost > least || (plan->cost == least && plan->scalar_loads >= scalar_loads))) return;
    if (!(aligned && usual_width > 1) && value_at_hint(plan->groups, graph.symbols) * lanes < kManyPoints) return;
    // Single elements that neighbouring threads read next to one another are better than those of a thread.
    if (usual_width == 1 && !plan->only_small_tables) return;
    least = plan->cost;
    scalar_loads = plan->scalar_loads;
    is_of_vectors = aligned;
    best = std::move(plan);
    of_best = candidate;
  };
  std::vector<Kernel> seen;
  const auto consider = [&](Kernel candidate) {
    if (std::ranges::find(seen, candidate) != seen.end()) return;
    seen.push_back(candidate);
    for (int lanes = width; lanes >= 2 && !is_of_vectors; lanes /= 2) consider_lanes(candidate, lanes);
  };
  consider(merged);
  if (const auto extended = without_remainders(kernel)) consider(merge_axes(*extended, graph));
  consider(merge_axes(split_axes(kernel, graph), graph));
  consider(flat(merged));
  if (!best) return std::nullopt;
  return UnalignedChoice{*std::move(of_best), *std::move(best)};
}

double sectors_of_loads(const UnalignedChoice& choice, const Graph& graph) {
  return UnalignedLoadSamples(choice.plan, graph).sectors_per_point();
}

std::optional<KernelSource> unaligned_planes(const Kernel& merged, const Graph& graph, const Target& target,
                                             int width) {
  const std::vector<std::uint32_t>& axes = merged.outputs[0].axes;
  if (width < 2 || axes.size() < 2 || writes_half_bytes(merged)) return std::nullopt;
  const auto is_short = [&](std::uint32_t axis) {
    const auto extent = merged.pool.extent(axis).as_constant();
    return extent && *extent >= 2 && *extent <= 4;
  };
  const auto attempt = [&](const Kernel& kernel, std::size_t plane) -> std::optional<KernelSource> {
    auto plan = plan_unaligned_planes(kernel, graph, width, plane);
    if (!plan || !plan->only_small_tables) return std::nullopt;
    return emit_unaligned_pointwise(kernel, graph, target, *std::move(plan));
  };
  for (std::size_t i = 0; i + 1 < axes.size(); ++i)
    if (is_short(axes[i]))
      if (auto made = attempt(merged, i)) return made;
  if (!is_short(axes.back())) return std::nullopt;
  const Kernel turned = change_axes(merged, [&](ExprPool& pool) {
    AxisChange change = same_axes(merged, pool);
    std::swap(change.new_axes[axes.size() - 1], change.new_axes[axes.size() - 2]);
    return change;
  });
  return attempt(turned, axes.size() - 2);
}

}  // namespace fusec
