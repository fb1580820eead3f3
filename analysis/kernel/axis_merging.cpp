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

// The positions of loads and outputs.
std::vector<IndexExpr> positions_in(const Kernel& kernel, const Graph& graph) {
  std::vector<IndexExpr> positions;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (kernel.pool[id].op == ExprOp::kLoad) positions.push_back(position_of(graph, kernel.pool, id));
  for (const KernelOutput& output : kernel.outputs) positions.push_back(position_of(kernel.pool, output));
  return positions;
}

// How many of them, and of the kernel's index values, contain a division or remainder.
std::size_t count_divided(std::span<const IndexExpr> positions, const Kernel& kernel) {
  std::size_t count = static_cast<std::size_t>(std::ranges::count_if(positions, has_division));
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    count += kernel.pool[id].op == ExprOp::kIndex && has_division(kernel.pool[id].indices[0]);
  return count;
}

}  // namespace

std::size_t count_divisions(const Kernel& kernel, const Graph& graph) {
  return count_divided(positions_in(kernel, graph), kernel);
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

AxisMerger::AxisMerger(Kernel kernel, const Graph& graph)
    : kernel_(std::move(kernel)),
      graph_(graph),
      positions_(positions_in(kernel_, graph)),
      divided_(count_divided(positions_, kernel_)) {}

// Whether a position that is linear in both axes (o * outer + i * inner) would need a division, so that the kernel need
// not be made (index values may lose it in a comparison: m / 4 - 1 >= 0 is m - 4 >= 0). With m = outer * extent + inner
// it is i * m + (o - i * extent) * (m / extent).
bool AxisMerger::tears_a_position(std::size_t first) const {
  const std::vector<std::uint32_t>& axes = kernel_.outputs[0].axes;
  const auto extent = kernel_.pool.extent(axes[first + 1]).as_constant();
  if (!extent || kernel_.pool.extent(axes[first]).is(1)) return false;
  return std::ranges::any_of(positions_, [&](const IndexExpr& position) {
    const auto outer = coefficient_of(position, axis_variable(axes[first]));
    const auto inner = coefficient_of(position, axis_variable(axes[first + 1]));
    return outer && inner && *outer != *inner * *extent;
  });
}

bool AxisMerger::merge(std::size_t first, const std::function<bool(const Kernel&)>& accepts) {
  const ExprPool& pool = kernel_.pool;
  // The merged axis is divided by this extent, which must not be 0.
  if (range_of(pool.extent(kernel_.outputs[0].axes[first + 1]), pool.bounds()).min < 1) return false;
  if (!accepts && divided_ == 0 && tears_a_position(first)) return false;
  Kernel merged = merge_pair(kernel_, first);
  std::vector<IndexExpr> positions = positions_in(merged, graph_);
  const std::size_t divided = count_divided(positions, merged);
  if (divided > divided_ && !(accepts && accepts(merged))) return false;
  kernel_ = std::move(merged);
  positions_ = std::move(positions);
  divided_ = divided;
  return true;
}

Kernel merge_axes(const Kernel& kernel, const Graph& graph) {
  AxisMerger merger(drop_unit_axes(kernel), graph);
  for (std::size_t i = merger.kernel().outputs[0].axes.size(); i-- > 1;) merger.merge(i - 1);
  return merger.kernel();
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
