#include "schedule/reduction/reduction_memory_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "schedule/kernel_forms.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

// The strides of the axes, in elements; symbolic strides count as larger than any number. Nothing if the strides have
// no strict order.
std::optional<std::vector<std::int64_t>> strides_of(const IndexExpr& at, const Axes& axes) {
  std::vector<std::int64_t> strides;
  for (const std::uint32_t a : axes) {
    const Variable variable{Variable::Kind::kAxis, a};
    if (!mentions(at, variable)) return std::nullopt;
    const auto step = coefficient_of(at, variable);
    if (step && *step <= 0) return std::nullopt;
    strides.push_back(step.value_or(std::numeric_limits<std::int64_t>::max()));
  }
  return strides;
}

// The axes in the memory order of the first load that runs along all of them.
Axes in_memory_order(const Kernel& kernel, const Graph& graph, ExprId reduction) {
  const ExprPool& pool = kernel.pool;
  const Axes& axes = pool[reduction].axes;
  for (const ExprId id : reachable(pool, std::vector<ExprId>{pool[reduction].args[0]})) {
    if (pool[id].op != ExprOp::kLoad) continue;
    const auto strides = strides_of(position_of(graph, pool, id), axes);
    if (!strides) continue;
    std::vector<std::size_t> order(axes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return (*strides)[i]; });
    Axes sorted;
    for (const std::size_t i : order) sorted.push_back(axes[i]);
    return sorted;
  }
  return axes;
}

bool counts_places(const ExprNode& reduction) {
  return reduction.reduction == Reduction::kArgMax || reduction.reduction == Reduction::kArgMin;
}

}  // namespace

Kernel with_reductions_in_memory_order(const Kernel& kernel, const Graph& graph) {
  const ExprPool& pool = kernel.pool;
  std::map<Axes, Axes> orders;
  for (const ExprId r : row_reductions(kernel))
    if (pool[r].axes.size() > 1 && !counts_places(pool[r]))
      orders.try_emplace(pool[r].axes, in_memory_order(kernel, graph, r));
  for (const ExprId r : row_reductions(kernel))
    if (counts_places(pool[r])) orders.erase(pool[r].axes);
  std::erase_if(orders, [](const auto& order) { return order.first == order.second; });
  if (orders.empty()) return kernel;
  return change_axes(kernel, [&](ExprPool& changed, ExprCopier& copier) {
    AxisChange change = same_axes(kernel, changed);
    for (const auto& [before, after] : orders) {
      Axes& renamed = copier.reduction_axes[before];
      for (const std::uint32_t a : after) {
        renamed.push_back(changed.new_axis(pool.extent(a)));
        copier.axis[a] = IndexExpr::axis(renamed.back());
      }
    }
    return change;
  });
}

}  // namespace fusec
