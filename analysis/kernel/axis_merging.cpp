#include "analysis/kernel/axis_merging.h"

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/graph.h"

namespace fusec {
namespace {

bool has_division(const IndexExpr& e) {
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors)
      if (factor->kind != IndexAtom::Kind::kVariable) return true;
  return false;
}

}  // namespace

std::size_t count_divisions(const Kernel& kernel, const Graph& graph) {
  std::size_t count = 0;
  const Bounds& bounds = kernel.pool.bounds();
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad) count += has_division(position_of(graph, kernel.pool, id));
    if (n.op == ExprOp::kIndex) count += has_division(n.indices[0]);
  }
  for (const KernelOutput& output : kernel.outputs)
    count += has_division(simplify(flat_index(output.type.shape, output.index), bounds));
  return count;
}

Kernel drop_unit_axes(const Kernel& kernel) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    for (const std::uint32_t a : kernel.outputs[0].axes) {
      if (kernel.pool.extent(a).is(1)) {
        change.values.emplace_back(0);
        continue;
      }
      change.new_axes.push_back(pool.new_axis(kernel.pool.extent(a)));
      change.values.push_back(IndexExpr::axis(change.new_axes.back()));
    }
    return change;
  });
}

Kernel merge_pair(const Kernel& kernel, std::size_t first) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr& extent = kernel.pool.extent(axes[i]);
      if (i == first) {
        const IndexExpr& inner = kernel.pool.extent(axes[i + 1]);
        const IndexExpr both = IndexExpr::axis(pool.new_axis(extent * inner));
        change.new_axes.push_back(both.as_variable()->id);
        change.values.push_back(floor_div(both, inner));
        change.values.push_back(floor_mod(both, inner));
        ++i;
      } else {
        change.new_axes.push_back(pool.new_axis(extent));
        change.values.push_back(IndexExpr::axis(change.new_axes.back()));
      }
    }
    return change;
  });
}

Kernel merge_axes(const Kernel& kernel, const Graph& graph) {
  Kernel merged = drop_unit_axes(kernel);
  std::size_t divided = count_divisions(merged, graph);
  for (std::size_t i = merged.outputs[0].axes.size(); i-- > 1;) {
    const std::vector<std::uint32_t>& axes = merged.outputs[0].axes;
    const Range inner = range_of(merged.pool.extent(axes[i]), merged.pool.bounds());
    if (inner.min < 1) continue;  // the merged axis is divided by this extent, which must not be 0
    Kernel candidate = merge_pair(merged, i - 1);
    const std::size_t now = count_divisions(candidate, graph);
    if (now > divided) continue;
    divided = now;
    merged = std::move(candidate);
  }
  return merged;
}

Kernel split_last_axis(const Kernel& kernel, int width, std::span<ExprId> follow) {
  const auto groups_and_lanes = [&](ExprPool& pool, ExprCopier&) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const IndexExpr& extent = kernel.pool.extent(axes[i]);
      const bool last = i + 1 == axes.size();
      const std::uint32_t outer = pool.new_axis(last ? simplify(ceil_div(extent, width), pool.bounds()) : extent);
      change.new_axes.push_back(outer);
      if (!last) {
        change.values.push_back(IndexExpr::axis(outer));
        continue;
      }
      const std::uint32_t lane = pool.new_axis(width);
      change.new_axes.push_back(lane);
      change.values.push_back(IndexExpr::axis(outer) * width + IndexExpr::axis(lane));
    }
    return change;
  };
  return change_axes(kernel, groups_and_lanes, follow);
}

}  // namespace fusec
