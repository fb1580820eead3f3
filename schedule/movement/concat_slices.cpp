#include "schedule/movement/concat_slices.h"

#include <algorithm>
#include <vector>

#include "analysis/kernel/copy_expr.h"

namespace fusec {
namespace {

constexpr std::size_t kMostSlices = 32;

using Steps = std::vector<std::int64_t>;  // by dimension of the tensor

// What is chosen from loads of one tensor by one axis alone.
struct ConcatSlices {
  ExprId select = kNoExpr;
  std::uint32_t axis = 0;
  std::int64_t slices = 0;
};

// An axis of the slices' numbers, and how far one lies behind the one before.
struct SliceAxis {
  std::int64_t extent;
  Steps steps;
};

// The only output axis that the conditions of a chain of choices ask for.
std::optional<std::uint32_t> axis_of_conditions(const Kernel& kernel, const std::vector<ExprId>& conditions) {
  std::optional<std::uint32_t> axis;
  for (const ExprId id : reachable(kernel.pool, conditions)) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad) return std::nullopt;
    if (n.op != ExprOp::kIndex) continue;
    for (const Variable v : variables_of(n.indices[0])) {
      if (v.kind != Variable::Kind::kAxis || (axis && *axis != v.id)) return std::nullopt;
      axis = v.id;
    }
  }
  return axis;
}

std::optional<ConcatSlices> read_concat_slices(const Kernel& kernel, ExprId select) {
  const ExprPool& pool = kernel.pool;
  std::vector<ExprId> waiting{select}, conditions, loads;
  while (!waiting.empty()) {
    const ExprId id = waiting.back();
    waiting.pop_back();
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kSelect) {
      conditions.push_back(n.args[0]);
      waiting.insert(waiting.end(), {n.args[1], n.args[2]});
    } else if (n.op == ExprOp::kLoad && (loads.empty() || n.source == pool[loads[0]].source)) {
      loads.push_back(id);
    } else if (n.op != ExprOp::kConstant) {
      return std::nullopt;
    }
    if (loads.size() > kMostSlices || conditions.size() > kMostSlices) return std::nullopt;
  }
  const auto axis = axis_of_conditions(kernel, conditions);
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  if (loads.size() < 2 || !axis || std::ranges::find(axes, *axis) == axes.end()) return std::nullopt;
  const auto extent = pool.extent(*axis).as_constant();
  const auto slices = static_cast<std::int64_t>(loads.size());
  if (!extent || *extent < slices || *extent % slices != 0) return std::nullopt;
  return ConcatSlices{select, *axis, slices};
}

// Where slice `number` is loaded from, over the output's axes in order, of which the joined one has a slice's elements.
std::optional<std::vector<IndexExpr>> indices_of_slice(const Kernel& kernel, const ConcatSlices& joined,
                                                       std::int64_t number) {
  ExprPool pool(kernel.pool.bounds());
  ExprCopier copier(kernel.pool, pool);
  const std::int64_t each = *kernel.pool.extent(joined.axis).as_constant() / joined.slices;
  for (const std::uint32_t axis : kernel.outputs[0].axes) {
    const bool is_joined = axis == joined.axis;
    const IndexExpr now = IndexExpr::axis(pool.new_axis(is_joined ? IndexExpr(each) : kernel.pool.extent(axis)));
    copier.axis[axis] = is_joined ? now + number * each : now;
  }
  const ExprNode& n = pool[copier.copy(joined.select)];
  if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr) return std::nullopt;
  std::vector<IndexExpr> indices;
  for (const IndexExpr& e : n.indices) {
    for (const Variable v : variables_of(e)) {
      const bool is_of_output = v.kind == Variable::Kind::kAxis && v.id < kernel.outputs[0].axes.size();
      if (!is_of_output && v.kind != Variable::Kind::kSymbol) return std::nullopt;
    }
    indices.push_back(simplify(e, pool.bounds()));
  }
  return indices;
}

Steps multiplied(const Steps& steps, std::int64_t by) {
  Steps product = steps;
  for (std::int64_t& step : product) step *= by;
  return product;
}

// Axes, innermost first, that number the slices so that each lies evenly behind the one before; `behind`: by how much
// each lies behind the first.
std::optional<std::vector<SliceAxis>> axes_of_slices(const std::vector<Steps>& offsets) {
  const auto count = static_cast<std::int64_t>(offsets.size());
  std::vector<SliceAxis> axes;
  for (std::int64_t inside = 1; inside < count;) {
    const Steps& step = offsets[static_cast<std::size_t>(inside)];
    std::int64_t extent = 1;
    for (std::int64_t more = 2; more * inside <= count; ++more) {
      if (offsets[static_cast<std::size_t>((more - 1) * inside)] != multiplied(step, more - 1)) break;
      if (count % (more * inside) == 0) extent = more;
    }
    if (extent == 1) return std::nullopt;
    axes.push_back({extent, step});
    inside *= extent;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    Steps sum(offsets[0].size(), 0);
    std::int64_t rest = i;
    for (const SliceAxis& axis : axes) {
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += rest % axis.extent * axis.steps[d];
      rest /= axis.extent;
    }
    if (sum != offsets[static_cast<std::size_t>(i)]) return std::nullopt;
  }
  return axes;
}

// The kernel with the joined axis as the slices' axes and one of a slice's elements.
Kernel with_axes(const Kernel& kernel, const ConcatSlices& joined, const std::vector<IndexExpr>& first,
                 const std::vector<SliceAxis>& slices) {
  const std::int64_t each = *kernel.pool.extent(joined.axis).as_constant() / joined.slices;
  return change_axes(kernel, [&](ExprPool& pool, ExprCopier& copier) {
    AxisChange change;
    std::vector<IndexExpr> more(first.size(), 0), elements;  // elements: what `first` is over
    for (const std::uint32_t axis : kernel.outputs[0].axes) {
      IndexExpr number = 0;
      if (axis == joined.axis)
        for (std::size_t i = slices.size(); i-- > 0;) {
          change.new_axes.push_back(pool.new_axis(slices[i].extent));
          const IndexExpr of_slices = IndexExpr::axis(change.new_axes.back());
          number = number * slices[i].extent + of_slices;
          for (std::size_t d = 0; d < more.size(); ++d) more[d] += of_slices * slices[i].steps[d];
        }
      change.new_axes.push_back(pool.new_axis(axis == joined.axis ? IndexExpr(each) : kernel.pool.extent(axis)));
      elements.push_back(IndexExpr::axis(change.new_axes.back()));
      change.values.push_back(number * each + elements.back());
    }
    std::vector<IndexExpr> indices;
    for (std::size_t d = 0; d < first.size(); ++d)
      indices.push_back(substitute(first[d],
                                   [&](Variable v) -> std::optional<IndexExpr> {
                                     if (v.kind != Variable::Kind::kAxis) return std::nullopt;
                                     return elements.at(v.id);
                                   }) +
                        more[d]);
    ExprId load = joined.select;
    while (kernel.pool[load].op == ExprOp::kSelect) load = kernel.pool[load].args[1];
    const ExprNode& n = kernel.pool[load];
    copier.rewritten = [&pool, select = joined.select, source = n.source, dtype = n.dtype, indices](
                           ExprId id, const ExprCopier::Copied&) {
      return id == select ? pool.load(source, dtype, indices) : kNoExpr;
    };
    return change;
  });
}

std::optional<Kernel> as_axes(const Kernel& kernel, const ConcatSlices& joined) {
  std::vector<Steps> offsets;
  std::vector<IndexExpr> first;
  for (std::int64_t i = 0; i < joined.slices; ++i) {
    auto indices = indices_of_slice(kernel, joined, i);
    if (!indices) return std::nullopt;
    if (i == 0) first = *indices;
    Steps steps;
    for (std::size_t d = 0; d < indices->size(); ++d) {
      const auto step = ((*indices)[d] - first[d]).as_constant();
      if (!step) return std::nullopt;
      steps.push_back(*step);
    }
    offsets.push_back(std::move(steps));
  }
  const auto slices = axes_of_slices(offsets);
  if (!slices) return std::nullopt;
  return with_axes(kernel, joined, first, *slices);
}

}  // namespace

std::optional<Kernel> concat_slices_to_axes(const Kernel& kernel) {
  if (kernel.outputs.empty()) return std::nullopt;
  const std::vector<ExprId> order = reachable(kernel.pool, roots_of(kernel));
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (kernel.pool[*at].op != ExprOp::kSelect) continue;
    const auto joined = read_concat_slices(kernel, *at);
    if (!joined) continue;
    if (auto with = as_axes(kernel, *joined)) return with;
  }
  return std::nullopt;
}

}  // namespace fusec
