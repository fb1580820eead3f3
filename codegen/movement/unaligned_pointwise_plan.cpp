#include "codegen/movement/unaligned_pointwise_plan.h"

#include <algorithm>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "codegen/access/vector_access.h"
#include "codegen/access/vectorized_loads.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr std::int64_t kSmallTable = 1024;  // elements that stay in the cache, however they are read

class UnalignedPlanner {
 public:
  UnalignedPlanner(const Kernel& merged, const Graph& graph, int width) : merged_(merged), graph_(graph) {
    plan_.width = width;
  }

  // The output axis `plane` is short: a thread has lanes of all its elements. Nothing where no access is the better for
  // it.
  std::optional<UnalignedPlan> run_planes(std::size_t plane) {
    const std::vector<std::uint32_t>& axes = merged_.outputs[0].axes;
    if (!proves_multiple_of(merged_.pool.extent(axes.back()), plan_.width, merged_.pool.bounds())) return std::nullopt;
    plan_.planes = static_cast<int>(*merged_.pool.extent(axes[plane]).as_constant());
    split();
    plan_.plane = plan_.outer[plane];
    plan_.outer.erase(plan_.outer.begin() + static_cast<std::ptrdiff_t>(plane));
    plan_.groups = plan_.kernel.pool.extent(plan_.group) * point_count(plan_.kernel.pool, plan_.outer);
    plan_.total = 0;
    auto plan = see_all();
    if (!plan || !is_of_planes_) return std::nullopt;
    return plan;
  }

  std::optional<UnalignedPlan> run() {
    const std::vector<std::uint32_t>& axes = merged_.outputs[0].axes;
    const IndexExpr& inner = merged_.pool.extent(axes.back());
    const Bounds& bounds = merged_.pool.bounds();
    if (axes.size() == 1 || proves_multiple_of(inner, plan_.width, bounds))
      split();
    else if (range_of(inner, bounds).min >= plan_.width)
      cross();
    else
      return std::nullopt;
    return see_all();
  }

 private:
  std::optional<UnalignedPlan> see_all() {
    depends_ = dependences(plan_.kernel.pool);
    for (const KernelOutput& output : plan_.kernel.outputs)
      if (!see(output)) return std::nullopt;
    const std::vector<ExprId> ids = reachable(plan_.kernel.pool, roots_of(plan_.kernel));
    for (const ExprId id : ids)
      if (plan_.kernel.pool[id].op == ExprOp::kLoad && of_lanes(id)) see(id);
    return std::move(plan_);
  }

  // Rows, or the only one, in groups.
  void split() {
    plan_.kernel = split_last_axis(merged_, plan_.width);
    const std::vector<std::uint32_t>& axes = plan_.kernel.outputs[0].axes;
    plan_.lane = axes.back();
    plan_.group = axes[axes.size() - 2];
    plan_.outer.assign(axes.begin(), axes.end() - 2);
    plan_.groups = point_count(plan_.kernel.pool, {axes.begin(), axes.end() - 1});
    const IndexExpr& inner = merged_.pool.extent(merged_.outputs[0].axes.back());
    if (plan_.outer.empty()) plan_.total = inner;
  }

  // All points, as the results lie in memory, in groups.
  void cross() {
    plan_.crosses_rows = true;
    plan_.kernel = change_axes(merged_, [&](ExprPool& pool) {
      AxisChange change = same_axes(merged_, pool);
      change.new_axes.push_back(pool.new_axis(plan_.width));
      change.values.back() += IndexExpr::axis(change.new_axes.back());
      return change;
    });
    ExprPool& pool = plan_.kernel.pool;
    const std::vector<std::uint32_t>& axes = plan_.kernel.outputs[0].axes;
    plan_.lane = axes.back();
    plan_.column = axes[axes.size() - 2];
    plan_.outer.assign(axes.begin(), axes.end() - 2);
    plan_.row_length = pool.extent(plan_.column);
    plan_.total = point_count(pool, {axes.begin(), axes.end() - 1});
    plan_.groups = simplify(ceil_div(plan_.total, plan_.width), pool.bounds());
    plan_.group = pool.new_axis(plan_.groups);
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) flat_ = flat_ * pool.extent(axes[i]) + IndexExpr::axis(axes[i]);
    flat_ = simplify(flat_ + IndexExpr::axis(plan_.lane), pool.bounds());
  }

  bool depends(ExprId id, std::uint32_t axis) const { return std::ranges::binary_search(depends_[id], axis); }
  bool of_lanes(ExprId id) const {
    return depends(id, plan_.lane) || (plan_.crosses_rows && depends(id, plan_.column));
  }

  // A position in terms of groups, if it goes on as the results do from row to row.
  std::optional<IndexExpr> of_groups(const IndexExpr& position) const {
    const auto step = coefficient_of(position, axis_variable(plan_.lane));
    if (!step || *step == 0) return std::nullopt;
    const auto start = simplify(position - flat_ * *step, plan_.kernel.pool.bounds()).as_constant();
    if (!start) return std::nullopt;
    return (IndexExpr::axis(plan_.group) * plan_.width + IndexExpr::axis(plan_.lane)) * *step + *start;
  }

  bool see(const KernelOutput& output) {
    const Bounds& bounds = plan_.kernel.pool.bounds();
    IndexExpr at = simplify(flat_index(output.type.shape, output.index), bounds);
    if (plan_.crosses_rows) {
      const auto position = of_groups(at);
      if (!position) return false;
      at = *position;
    }
    if (plan_.plane) {
      const int vectors = bits(output.type.dtype) * plan_.width * plan_.planes / 128;
      const IndexExpr first =
          simplify(at - IndexExpr::axis(plan_.lane) * plan_.planes - IndexExpr::axis(*plan_.plane), bounds);
      const bool fits = bits(output.type.dtype) * plan_.width * plan_.planes % 128 == 0 && vectors >= 2 && vectors <= 4;
      if (fits && !mentions(first, axis_variable(plan_.lane)) && !mentions(first, axis_variable(*plan_.plane)) &&
          proves_multiple_of(first, 128 / bits(output.type.dtype), bounds)) {
        plan_.stores.push_back(first);
        plan_.together.push_back(vectors);
        plan_.cost += vectors;
        is_of_planes_ = true;
        return true;
      }
    }
    if (!is_vector_position(at, plan_.lane, plan_.width, output.type.dtype, bounds)) return false;
    plan_.together.push_back(0);
    plan_.stores.push_back(at - IndexExpr::axis(plan_.lane));
    plan_.cost += plan_.planes * ((bits(output.type.dtype) * plan_.width + 127) / 128);
    return true;
  }

  bool may_be_window(ExprId load) const {
    const ExprPool& pool = plan_.kernel.pool;
    const ExprNode& n = pool[load];
    if (std::ranges::any_of(values_in(n), [&](ExprId value) { return of_lanes(value); })) return false;
    if (n.args[0] == kNoExpr) return true;
    return std::ranges::none_of(reachable(pool, std::vector<ExprId>{n.args[0]}),
                                [&](ExprId id) { return pool[id].op == ExprOp::kLoad && of_lanes(id); });
  }

  void see(ExprId load) {
    const ExprNode& n = plan_.kernel.pool[load];
    IndexExpr position = position_of(graph_, plan_.kernel.pool, load);
    std::optional<UnalignedLoad> window;
    bool next_row = false;
    if (may_be_window(load)) {
      if (plan_.crosses_rows) {
        if (const auto flat = of_groups(position)) {
          position = *flat;
        } else {
          next_row = true;
          const auto step = coefficient_of(position, axis_variable(plan_.lane));
          if (!step || step != coefficient_of(position, axis_variable(plan_.column))) return add_scalar_load(load);
        }
      }
      const LaneAxis lane{plan_.lane, plan_.width};
      if (plan_.plane && depends(load, *plan_.plane) &&
          !is_indirect_along(position, {*plan_.plane}, plan_.kernel.pool) &&
          (n.args[0] == kNoExpr || !depends(n.args[0], *plan_.plane))) {
        window = find_unaligned_load(plan_.kernel, graph_, load, position, {lane, {*plan_.plane, plan_.planes}},
                                     plan_.group);
        if (window) {
          is_of_planes_ = true;
          plan_.cost += vectors_of(*window);
          plan_.reads.push_back({.window = *std::move(window), .all_planes = true});
          return;
        }
      }
      window = find_unaligned_load(plan_.kernel, graph_, load, position, {lane}, next_row ? plan_.column : plan_.group);
    }
    if (!window) return add_scalar_load(load);
    const int times = next_row ? 2 : plan_.plane && depends(load, *plan_.plane) ? plan_.planes : 1;
    plan_.cost += times * vectors_of(*window) + (window->words < 4 ? times : 0);
    plan_.reads.push_back({*std::move(window), next_row});
  }

  void add_scalar_load(ExprId load) {
    ++plan_.scalar_loads;
    plan_.cost += plan_.width * plan_.planes;
    const auto count = element_count(graph_.tensor(plan_.kernel.pool[load].source).shape);
    if (!count || range_of(*count, plan_.kernel.pool.bounds()).max > kSmallTable) plan_.only_small_tables = false;
  }

  const Kernel& merged_;
  const Graph& graph_;
  UnalignedPlan plan_;
  IndexExpr flat_ = 0;
  bool is_of_planes_ = false;  // some access is of all planes
  Dependences depends_;
};

}  // namespace

std::optional<UnalignedPlan> plan_unaligned_loads(const Kernel& merged, const Graph& graph, int width) {
  return UnalignedPlanner(merged, graph, width).run();
}

std::optional<UnalignedPlan> plan_unaligned_planes(const Kernel& merged, const Graph& graph, int width,
                                                   std::size_t plane) {
  return UnalignedPlanner(merged, graph, width).run_planes(plane);
}

}  // namespace fusec
