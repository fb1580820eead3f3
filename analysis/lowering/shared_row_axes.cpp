#include "analysis/lowering/shared_row_axes.h"

#include <algorithm>
#include <optional>

namespace fusec {
namespace {

// Extents that depend on axes or on loaded values do not qualify.
bool has_only_symbols(const IndexExpr& e) {
  return std::ranges::all_of(variables_of(e), [](Variable v) { return v.kind == Variable::Kind::kSymbol; });
}

bool mentions(const IndexExpr& e, const std::vector<std::uint32_t>& axes) {
  return std::ranges::any_of(variables_of(e), [&](Variable v) {
    return v.kind == Variable::Kind::kValue ||
           (v.kind == Variable::Kind::kAxis && std::ranges::find(axes, v.id) != axes.end());
  });
}

// Returns whether an index below the expression (of a load or its guard) mentions one of the axes.
bool is_about(const ExprPool& pool, ExprId id, const std::vector<std::uint32_t>& axes) {
  return std::ranges::any_of(reachable(pool, std::span(&id, 1)), [&](ExprId under) {
    return std::ranges::any_of(pool[under].indices, [&](const IndexExpr& e) {
      return std::ranges::any_of(axes, [&](std::uint32_t a) {
        return fusec::mentions(e, Variable{Variable::Kind::kAxis, a});
      });
    });
  });
}

}  // namespace

ExprId SharedRowAxes::without_guard(ExprId first, ExprId value, const std::function<bool(const ExprNode&)>& goes) {
  return rewritten(first, value, [&](ExprNode& node) {
    if (node.op == ExprOp::kLoad && goes(node)) node.args[0] = kNoExpr;
  });
}

ExprId SharedRowAxes::take(ExprId first, ExprId value, std::span<const IndexExpr> rows) {
  const auto end = static_cast<ExprId>(pool_.size());
  std::map<std::uint32_t, std::uint32_t> renamed;
  for (ExprId id = first; id < end; ++id) {
    if (pool_[id].op != ExprOp::kReduce || is_given_up(id)) continue;
    const std::vector<std::uint32_t> axes = pool_[id].axes;
    std::vector<IndexExpr> extents;
    for (const std::uint32_t a : axes) extents.push_back(pool_.extent(a));
    if (!std::ranges::all_of(extents, has_only_symbols)) return value;
    const std::vector<std::uint32_t>& mine = shared_.try_emplace(extents, axes).first->second;
    if (std::ranges::any_of(rows, [&](const IndexExpr& e) { return mentions(e, mine); })) return value;
    if (axes != mine && is_about(pool_, pool_[id].args[0], mine)) return value;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i] != mine[i]) renamed[axes[i]] = mine[i];
  }
  if (renamed.empty()) return value;
  const auto name_of = [&](std::uint32_t axis) {
    const auto at = renamed.find(axis);
    return at == renamed.end() ? axis : at->second;
  };
  return rewritten(first, value, [&](ExprNode& node) {
    for (IndexExpr& e : node.indices)
      e = substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
        if (v.kind == Variable::Kind::kAxis) return IndexExpr::axis(name_of(v.id));
        return std::nullopt;
      });
    for (std::uint32_t& a : node.axes) a = name_of(a);
  });
}

ExprId SharedRowAxes::rewritten(ExprId first, ExprId value, const Change& change) {
  const auto end = static_cast<ExprId>(pool_.size());
  std::vector<ExprId> now(end - first);
  given_up_.resize(end, false);
  for (ExprId id = first; id < end; ++id) {
    if (given_up_[id]) continue;
    ExprNode node = pool_[id];
    for (ExprId& a : node.args)
      if (a != kNoExpr && a >= first) a = now[a - first];
    for (IndexExpr& e : node.indices)
      e = substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
        if (v.kind != Variable::Kind::kValue || v.id < first) return std::nullopt;
        return pool_.known_index(now[v.id - first], pool_.bounds().value_max.at(v.id));
      });
    change(node);
    const bool same = node == pool_[id];
    now[id - first] = same ? id : pool_.add(std::move(node));
    given_up_[id] = !same;
  }
  return value < first ? value : now[value - first];
}

}  // namespace fusec
