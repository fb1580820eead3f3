#include "schedule/convolution/windows.h"

#include <algorithm>
#include <numeric>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"

namespace fusec {

std::optional<std::vector<ExprId>> window_reductions(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  std::vector<ExprId> reductions;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kReduce) continue;
    if (n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin) return std::nullopt;
    for (const ExprId inner : reachable(pool, std::span(n.args.data(), 1)))
      if (pool[inner].op == ExprOp::kReduce) return std::nullopt;
    reductions.push_back(id);
  }
  return reductions;
}

bool share_axes(const ExprPool& pool, std::span<const ExprId> reductions) {
  return std::ranges::all_of(reductions, [&](ExprId r) { return pool[r].axes == pool[reductions[0]].axes; });
}

std::optional<std::int64_t> reduced_elements(const ExprPool& pool, ExprId reduction) {
  return simplify(point_count(pool, pool[reduction].axes), pool.bounds()).as_constant();
}

std::optional<StencilAxis> window_of(const ExprPool& pool, std::span<const IndexExpr> indices, std::uint32_t result,
                                     std::uint32_t tap) {
  for (const IndexExpr& e : indices) {
    const auto of_result = coefficient_of(e, axis_variable(result)), of_tap = coefficient_of(e, axis_variable(tap));
    if (!of_result || !of_tap || *of_result <= 0 || *of_tap <= 0) continue;
    const std::int64_t common = std::gcd(*of_result, *of_tap);
    return StencilAxis{result, tap, *of_result / common, *of_tap / common, pool.extent(tap).as_constant().value_or(0)};
  }
  return std::nullopt;
}

bool moves_along(const IndexExpr& e, const StencilAxis& window) {
  const auto of_result = coefficient_of(e, axis_variable(window.result));
  const auto of_tap = coefficient_of(e, axis_variable(window.tap));
  return of_result && of_tap && *of_result * window.dilation == *of_tap * window.stride;
}

std::optional<std::uint32_t> contiguous_axis(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  for (const std::uint32_t a : kernel.outputs[0].axes) {
    const auto runs = [&](const KernelOutput& output) {
      const IndexExpr at = position_of(pool, output);
      return output.axes == kernel.outputs[0].axes && coefficient_of(at, axis_variable(a)) == 1;
    };
    if (!pool.extent(a).is(1) && std::ranges::all_of(kernel.outputs, runs)) return a;
  }
  return std::nullopt;
}

LaneSplit with_lanes(const Kernel& kernel, std::uint32_t axis, int lanes, std::span<ExprId> follow) {
  LaneSplit split;
  const auto change = [&](ExprPool& pool, ExprCopier&) {
    AxisChange made;
    for (const std::uint32_t a : kernel.outputs[0].axes)
      if (a != axis) made.new_axes.push_back(split.now[a] = pool.new_axis(kernel.pool.extent(a)));
    split.vector = pool.new_axis(simplify(ceil_div(kernel.pool.extent(axis), lanes), kernel.pool.bounds()));
    split.lane = pool.new_axis(lanes);
    made.new_axes.insert(made.new_axes.end(), {split.vector, split.lane});
    for (const std::uint32_t a : kernel.outputs[0].axes)
      made.values.push_back(a == axis ? IndexExpr::axis(split.vector) * lanes + IndexExpr::axis(split.lane)
                                      : IndexExpr::axis(split.now[a]));
    return made;
  };
  split.kernel = change_axes(kernel, change, follow);
  return split;
}

}  // namespace fusec
