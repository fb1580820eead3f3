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

std::vector<std::vector<std::uint32_t>> dependences(const ExprPool& pool) {
  std::vector<std::vector<std::uint32_t>> depends(pool.size());
  auto add = [](std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& more) {
    if (std::ranges::includes(to, more)) return;
    std::vector<std::uint32_t> both;
    both.reserve(to.size() + more.size());
    std::set_union(to.begin(), to.end(), more.begin(), more.end(), std::back_inserter(both));
    to = std::move(both);
  };
  auto add_axis = [](std::vector<std::uint32_t>& to, std::uint32_t axis) {
    const auto at = std::ranges::lower_bound(to, axis);
    if (at == to.end() || *at != axis) to.insert(at, axis);
  };
  auto add_index = [&](std::vector<std::uint32_t>& to, const IndexExpr& e) {
    if (const auto v = e.as_variable(); v && v->kind == Variable::Kind::kAxis) return add_axis(to, v->id);
    for (const Variable v : variables_of(e)) {
      if (v.kind == Variable::Kind::kAxis) add_axis(to, v.id);
      if (v.kind == Variable::Kind::kValue) add(to, depends[v.id]);
    }
  };
  for (ExprId id = 0; id < pool.size(); ++id) {
    const ExprNode& n = pool[id];
    for (const ExprId a : n.args)
      if (a != kNoExpr) add(depends[id], depends[a]);
    for (const IndexExpr& e : n.indices) add_index(depends[id], e);
    if (n.op != ExprOp::kReduce) continue;
    std::erase_if(depends[id],
                  [&](std::uint32_t a) { return std::find(n.axes.begin(), n.axes.end(), a) != n.axes.end(); });
    for (const std::uint32_t a : n.axes) add_index(depends[id], pool.extent(a));
  }
  return depends;
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
