#include "analysis/kernel/reduction_nesting.h"

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "ir/budget.h"

namespace fusec {

std::vector<std::uint32_t> nesting(const ExprPool& pool, std::span<const ExprId> order) {
  std::vector<std::uint32_t> level(pool.size(), 0);
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const ExprNode& n = pool[*id];
    count_step();
    const std::uint32_t inner = level[*id] + (n.op == ExprOp::kReduce ? 1 : 0);
    for (const ExprId a : n.args)
      if (a != kNoExpr) level[a] = std::max(level[a], inner);
    if (!pool.has_values()) continue;
    for (const ExprId v : values_in(n)) level[v] = std::max(level[v], inner);
  }
  return level;
}

std::vector<std::uint8_t> holding(const ExprPool& pool, std::span<const ExprId> order,
                                  const std::function<bool(ExprId)>& is) {
  std::vector<std::uint8_t> holds(pool.size(), 0);
  for (const ExprId id : order) {
    const ExprNode& n = pool[id];
    count_step();
    const auto held = [&](ExprId operand) { return operand != kNoExpr && holds[operand] != 0; };
    holds[id] =
        is(id) || std::ranges::any_of(n.args, held) || (pool.has_values() && std::ranges::any_of(values_in(n), held))
            ? 1
            : 0;
  }
  return holds;
}

std::vector<std::uint8_t> holding_reductions(const ExprPool& pool, std::span<const ExprId> order) {
  return holding(pool, order, [&](ExprId id) { return pool[id].op == ExprOp::kReduce; });
}

}  // namespace fusec
