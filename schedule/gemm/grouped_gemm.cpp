#include "schedule/gemm/grouped_gemm.h"

namespace fusec {
namespace {

bool is_number(const ExprPool& pool, ExprId id, const IndexExpr& wanted) {
  const ExprNode& n = pool[id];
  if (n.op == ExprOp::kIndex) return simplify(n.indices[0] - wanted, pool.bounds()).is(0);
  return n.op == ExprOp::kConstant && !is_float(n.type) && wanted.is(n.integer);
}

ExprId without_conversions(const ExprPool& pool, ExprId id) {
  while (pool[id].op == ExprOp::kConvert && !is_float(pool[id].type) && !is_float(pool[pool[id].args[0]].type))
    id = pool[id].args[0];
  return id;
}

// The number before it was clamped to be an index.
ExprId unclamped(const ExprPool& pool, ExprId id, const IndexExpr& extent) {
  for (;;) {
    id = without_conversions(pool, id);
    const ExprNode& n = pool[id];
    const bool clamps = (n.op == ExprOp::kMax && is_number(pool, n.args[1], 0)) ||
                        (n.op == ExprOp::kMin && is_number(pool, n.args[1], extent - 1));
    if (!clamps) return id;
    id = n.args[0];
  }
}

// True if the end is known per element of the axis: a constant, an index with a constant step, or a load.
bool is_of_each(const ExprPool& pool, const ExprNode& end, std::uint32_t axis) {
  const IndexExpr place = IndexExpr::axis(axis);
  if (end.op == ExprOp::kIndex) {
    const auto step = coefficient_of(end.indices[0], {Variable::Kind::kAxis, axis});
    return step && simplify(end.indices[0] - place * *step, pool.bounds()).as_constant().has_value();
  }
  const bool loaded =
      end.op == ExprOp::kLoad && end.args[0] == kNoExpr && end.indices.size() == 1 && end.indices[0] == place;
  return end.op == ExprOp::kConstant || loaded;
}

}  // namespace

std::optional<GroupedGemm> find_grouped_gemm(const ExprPool& pool, const Contraction& contraction) {
  if (!contraction.expert_index || contraction.rows.size() != 1) return std::nullopt;
  const IndexExpr& matrices = pool.extent(contraction.expert_index->axis);
  GroupedGemm groups{.number = unclamped(pool, contraction.expert_index->value, matrices)};
  const ExprNode& count = pool[groups.number];
  if (count.op != ExprOp::kReduce || count.reduction != Reduction::kSum || count.axes.size() != 1) return std::nullopt;
  groups.axis = count.axes[0];
  if (pool.extent(groups.axis) != matrices) return std::nullopt;
  const ExprNode& body = pool[count.args[0]];
  if (body.op != ExprOp::kConvert) return std::nullopt;
  const ExprNode& compares = pool[body.args[0]];
  if (compares.op != ExprOp::kLe && compares.op != ExprOp::kGe) return std::nullopt;
  const bool end_first = compares.op == ExprOp::kLe;
  groups.end = compares.args[end_first ? 0 : 1];
  const ExprId row = without_conversions(pool, compares.args[end_first ? 1 : 0]);
  if (!is_number(pool, row, IndexExpr::axis(contraction.rows[0]))) return std::nullopt;
  const ExprNode& end = pool[without_conversions(pool, groups.end)];
  return is_of_each(pool, end, groups.axis) ? std::optional(groups) : std::nullopt;
}

bool is_expert_guard(const ExprPool& pool, const GroupedGemm& groups, const IndexExpr& matrices, ExprId condition) {
  const ExprNode& n = pool[condition];
  return n.op == ExprOp::kLt && without_conversions(pool, n.args[0]) == groups.number &&
         is_number(pool, n.args[1], matrices);
}

std::function<bool(ExprId guard)> holds_within_groups(const ExprPool& pool, const Contraction& contraction,
                                                      const std::optional<GroupedGemm>& groups) {
  if (!groups) return [](ExprId) { return false; };
  return [&pool, groups = *groups, matrices = pool.extent(contraction.expert_index->axis)](ExprId guard) {
    return is_expert_guard(pool, groups, matrices, guard);
  };
}

}  // namespace fusec
