#include "codegen/schedules/repeated_axis.h"

#include <algorithm>

#include "analysis/copy_expr.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostTimes = 8;

// The kernel where the axis has one value.
Kernel at_place(const Kernel& kernel, std::size_t axis, std::int64_t place) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (i == axis) {
        change.values.emplace_back(place);
        continue;
      }
      change.new_axes.push_back(pool.new_axis(kernel.pool.extent(axes[i])));
      change.values.push_back(IndexExpr::axis(change.new_axes.back()));
    }
    return change;
  });
}

}  // namespace

std::optional<RepeatedAxis> without_repeated_axis(const Kernel& kernel) {
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  const std::vector<std::vector<std::uint32_t>> depends = dependences(kernel.pool);
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    const auto times = kernel.pool.extent(axes[i]).as_constant();
    if (!times || *times < 2 || *times > kMostTimes) continue;
    const bool alike = std::ranges::none_of(
        roots_of(kernel), [&](ExprId root) { return std::ranges::binary_search(depends[root], axes[i]); });
    if (!alike) continue;
    RepeatedAxis found{.kernel = at_place(kernel, i, 0), .times = static_cast<int>(*times)};
    const std::size_t outputs = found.kernel.outputs.size();
    for (std::int64_t place = 1; place < *times; ++place) {
      // Its expressions are those of the first place; only where it is stored is another one.
      const Kernel other = at_place(kernel, i, place);
      for (std::size_t k = 0; k < outputs; ++k) {
        KernelOutput output = found.kernel.outputs[k];
        output.index = other.outputs[k].index;
        found.kernel.outputs.push_back(std::move(output));
      }
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace fusec
