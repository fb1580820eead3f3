#include "schedule/convolution/sliding_window.h"

#include <algorithm>
#include <limits>

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;
using SlidingWindowPoint = SlidingWindow::Point;

// True if e is nonnegative under the point's known comparisons.
bool proves(const SlidingWindow& windows, const IndexExpr& e, const SlidingWindowPoint& point) {
  const Bounds& bounds = windows.kernel.pool.bounds();
  return proves_nonnegative(e, bounds) || std::ranges::any_of(point.known, [&](const IndexComparison& c) {
           return proves_nonnegative(simplify(e - slack_of(c), bounds), bounds);
         });
}

// True if the value is the identity of the reduction.
bool is_identity(const ExprNode& reduction, const ExprNode& value) {
  if (value.op != ExprOp::kConstant || !is_float(value.type)) return false;
  switch (reduction.reduction) {
    case Reduction::kSum:
      return value.real == 0;
    case Reduction::kMax:
      return value.real == -std::numeric_limits<double>::infinity();
    case Reduction::kMin:
      return value.real == std::numeric_limits<double>::infinity();
    default:
      return false;
  }
}

}  // namespace

IndexExpr index_at(const SlidingWindow& windows, const IndexExpr& e, const SlidingWindowPoint& point) {
  const auto first = [&] {
    return windows.clipped ? IndexExpr::axis(windows.first) : IndexExpr::axis(windows.tiles) * windows.steps;
  };
  const auto value = [&](Variable v) -> std::optional<IndexExpr> {
    if (v.kind != Variable::Kind::kAxis) return std::nullopt;
    if (v.id == windows.sliding_axis) return first() + point.step;
    if (!point.axes) return std::nullopt;
    const auto at = std::ranges::find(*point.axes, v.id);
    if (at == point.axes->end()) return std::nullopt;
    return point.elements[static_cast<std::size_t>(at - point.axes->begin())];
  };
  return simplify(substitute(e, value), windows.kernel.pool.bounds());
}

std::vector<IndexComparison> conditions_at(const SlidingWindow& windows, ExprId condition,
                                           const SlidingWindowPoint& point) {
  const auto all = index_comparisons(windows.kernel.pool, condition);
  std::vector<IndexComparison> open;
  for (IndexComparison c : *all) {
    c.difference = index_at(windows, c.difference, point);
    c.bound -= c.difference.constant_term();
    c.difference = c.difference - c.difference.constant_term();
    if (!proves(windows, slack_of(c), point) && std::ranges::find(open, c) == open.end()) open.push_back(std::move(c));
  }
  return open;
}

LoadPosition load_position(const SlidingWindow& windows, const Graph& graph, ExprId load,
                           const SlidingWindowPoint& point) {
  const ExprNode& n = windows.kernel.pool[load];
  const Bounds& bounds = windows.kernel.pool.bounds();
  const std::vector<IndexExpr>& shape = graph.tensor(n.source).shape;
  std::vector<IndexExpr> indices;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const IndexExpr own = index_at(windows, n.indices[d], point);
    IndexExpr at = own;
    if (!proves(windows, own, point)) at = max(at, 0);
    if (!proves(windows, shape[d] - 1 - own, point)) at = min(at, shape[d] - 1);
    indices.push_back(simplify(at, bounds));
  }
  LoadPosition position_of_load{simplify(flat_index(shape, indices), bounds), {}};
  if (n.args[0] != kNoExpr) position_of_load.guards = conditions_at(windows, n.args[0], point);
  return position_of_load;
}

std::vector<IndexComparison> conditions_of_row(const SlidingWindow& windows, ExprId reduction, std::int64_t step,
                                               std::int64_t row) {
  const ExprPool& pool = windows.kernel.pool;
  const ExprNode& body = pool[pool[reduction].args[0]];
  if (body.op != ExprOp::kSelect || !is_identity(pool[reduction], pool[body.args[2]])) return {};
  const Axes slid{windows.slid.at(reduction)};
  std::vector<IndexComparison> all = conditions_at(windows, body.args[0], {step, &slid, {row}});
  std::erase_if(all, [&](const IndexComparison& c) {
    return std::ranges::any_of(variables_of(c.difference), [&](Variable v) {
      return v != axis_variable(windows.tiles) && v != axis_variable(windows.first) && v.kind == Variable::Kind::kAxis;
    });
  });
  return all;
}

std::vector<SlidingWindowPoint> points_of(const SlidingWindow& windows, ExprId reduction, std::int64_t step,
                                          std::optional<std::int64_t> row) {
  const ExprPool& pool = windows.kernel.pool;
  const Axes& axes = pool[reduction].axes;
  std::vector<SlidingWindowPoint> points{{step, &axes, {}}};
  for (const std::uint32_t axis : axes) {
    const bool is_slid = row && windows.slid.at(reduction) == axis;
    std::vector<SlidingWindowPoint> longer;
    for (const SlidingWindowPoint& p : points)
      for (std::int64_t i = is_slid ? *row : 0; i < (is_slid ? *row + 1 : *pool.extent(axis).as_constant()); ++i) {
        longer.push_back(p);
        longer.back().elements.push_back(i);
      }
    points = std::move(longer);
  }
  return points;
}

std::vector<IndexExpr> row_key(const SlidingWindow& windows, ExprId reduction, std::int64_t step, std::int64_t row) {
  const ExprPool& pool = windows.kernel.pool;
  const Axes slid{windows.slid.at(reduction)};
  const SlidingWindowPoint point{step, &slid, {row}};
  std::vector<IndexExpr> key;
  const auto add = [&](const IndexExpr& e) { key.push_back(index_at(windows, e, point)); };
  for (const ExprId id : reachable(pool, std::span(pool[reduction].args.data(), 1))) {
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kLoad)
      for (const IndexExpr& e : n.indices) add(e);
    if (n.op == ExprOp::kIndex) add(n.indices[0]);
  }
  return key;
}

}  // namespace fusec
