#include "analysis/kernel/kernel.h"

#include <algorithm>
#include <iterator>

#include "analysis/kernel/loads.h"

namespace fusec {

std::vector<ExprId> roots_of(const Kernel& kernel) {
  std::vector<ExprId> roots;
  for (const KernelOutput& output : kernel.outputs) roots.push_back(output.expr);
  return roots;
}

Dependences::Place Dependences::kept(std::span<const std::uint32_t> axes) {
  const Place place{static_cast<std::uint32_t>(axes_.size()), static_cast<std::uint32_t>(axes.size())};
  axes_.insert(axes_.end(), axes.begin(), axes.end());
  return place;
}

Dependences::Place Dependences::united(Place a, Place b) {
  if (a == b || b.size == 0 || std::ranges::includes(of(a), of(b))) return a;
  if (std::ranges::includes(of(b), of(a))) return b;
  const std::uint32_t begin = static_cast<std::uint32_t>(axes_.size());
  axes_.resize(axes_.size() + a.size + b.size);
  const auto end = std::ranges::set_union(of(a), of(b), axes_.begin() + begin).out;
  axes_.erase(end, axes_.end());
  return {begin, static_cast<std::uint32_t>(axes_.size() - begin)};
}

Dependences::Place Dependences::with_axes_of(Place place, const IndexExpr& e) {
  const auto with_axis = [&](std::uint32_t axis) {
    if (!std::ranges::binary_search(of(place), axis)) place = united(place, kept(std::span(&axis, 1)));
  };
  if (const auto v = e.as_variable(); v && v->kind == Variable::Kind::kAxis) {
    with_axis(v->id);
    return place;
  }
  for (const Variable v : variables_of(e)) {
    if (v.kind == Variable::Kind::kAxis) with_axis(v.id);
    if (v.kind == Variable::Kind::kValue) place = united(place, places_[v.id]);
  }
  return place;
}

Dependences::Dependences(const ExprPool& pool) {
  places_.reserve(pool.size());
  axes_.reserve(4 * pool.size());
  std::vector<std::uint32_t> free;
  for (ExprId id = 0; id < pool.size(); ++id) {
    const ExprNode& n = pool[id];
    Place place;
    for (const ExprId a : n.args)
      if (a != kNoExpr) place = united(place, places_[a]);
    for (const IndexExpr& e : n.indices) place = with_axes_of(place, e);
    if (n.op == ExprOp::kReduce) {
      free.clear();
      std::ranges::copy_if(of(place), std::back_inserter(free), [&](std::uint32_t a) { return !contains(n.axes, a); });
      place = kept(free);
      for (const std::uint32_t a : n.axes) place = with_axes_of(place, pool.extent(a));
    }
    places_.push_back(place);
  }
}

bool is_indirect_along(const IndexExpr& position, const std::vector<std::uint32_t>& axes, const ExprPool& pool) {
  const std::vector<ExprId> values = values_in(position);
  if (values.empty()) return false;
  const auto depends = dependences(pool);
  return std::ranges::any_of(values, [&](ExprId id) {
    return std::ranges::any_of(axes, [&](std::uint32_t a) { return std::ranges::binary_search(depends[id], a); });
  });
}

std::vector<ValueId> inputs_of(const Kernel& kernel) {
  std::vector<ValueId> inputs;
  std::vector<std::uint8_t> seen;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op != ExprOp::kLoad) continue;
    if (seen.size() <= n.source) seen.resize(n.source + 1, 0);
    if (!seen[n.source]) inputs.push_back(n.source);
    seen[n.source] = 1;
  }
  return inputs;
}

IndexExpr point_count(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  IndexExpr count = 1;
  for (const std::uint32_t a : axes) count *= pool.extent(a);
  return count;
}

IndexExpr simplified_point_count(const ExprPool& pool, const std::vector<std::uint32_t>& axes) {
  return simplify(point_count(pool, axes), pool.bounds());
}

std::vector<ExprId> row_reductions(const Kernel& kernel) {
  const auto depends = dependences(kernel.pool);
  const std::vector<std::uint32_t>& axes = kernel.outputs[0].axes;
  std::vector<ExprId> found;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (kernel.pool[id].op == ExprOp::kReduce &&
        std::ranges::all_of(depends[id], [&](std::uint32_t a) { return contains(axes, a); }))
      found.push_back(id);
  return found;
}

bool writes_half_bytes(const Kernel& kernel) {
  return std::ranges::any_of(kernel.outputs, [](const KernelOutput& o) { return bits(o.type.dtype) == 4; });
}

}  // namespace fusec
