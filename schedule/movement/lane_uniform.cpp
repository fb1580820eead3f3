#include "schedule/movement/lane_uniform.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "analysis/kernel/loads.h"

namespace fusec {
namespace {

bool depends_on(const ExprPool& pool, ExprId id, Variable axis) {
  return std::ranges::any_of(reachable(pool, std::span(&id, 1)), [&](ExprId below) {
    return std::ranges::any_of(pool[below].indices, [&](const IndexExpr& e) { return mentions(e, axis); });
  });
}

}  // namespace

bool is_lane_uniform(const ExprPool& pool, ExprId condition, std::uint32_t lane_axis, int width) {
  const Variable lane{Variable::Kind::kAxis, lane_axis};
  std::vector<ExprId> left = {condition};
  while (!left.empty()) {
    const ExprId id = left.back();
    const ExprNode& n = pool[id];
    left.pop_back();
    if (!depends_on(pool, id, lane)) continue;
    if (n.op == ExprOp::kAnd || n.op == ExprOp::kOr) {
      left.insert(left.end(), {n.args[0], n.args[1]});
      continue;
    }
    if (n.op == ExprOp::kNot) {
      left.push_back(n.args[0]);
      continue;
    }
    const auto comparison = index_comparison(pool, id);
    if (!comparison) return false;
    const IndexExpr gap = simplify(slack_of(*comparison), pool.bounds());
    const auto step = coefficient_of(gap, lane);
    if (!step || (*step != 1 && *step != -1)) return false;
    const IndexExpr first =
        substitute(gap, [&](Variable v) { return v == lane ? std::optional<IndexExpr>(0) : std::nullopt; });
    if (!proves_multiple_of(*step == 1 ? first : first + 1, width, pool.bounds())) return false;
  }
  return true;
}

}  // namespace fusec
