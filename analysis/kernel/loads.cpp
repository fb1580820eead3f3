#include "analysis/kernel/loads.h"

#include <algorithm>

#include "ir/budget.h"

namespace fusec {
namespace {

// Splits guards at their `and`s. Returns each condition once.
std::vector<ExprId> conjuncts(const ExprPool& pool, std::vector<ExprId> guards) {
  std::vector<ExprId> found;
  for (std::size_t i = 0; i < guards.size(); ++i) {
    count_step();
    const ExprNode& n = pool[guards[i]];
    if (n.op == ExprOp::kAnd)
      guards.insert(guards.end(), {n.args[0], n.args[1]});
    else if (std::ranges::find(found, guards[i]) == found.end())
      found.push_back(guards[i]);
  }
  return found;
}

}  // namespace

IndexExpr position_of(const Graph& graph, const ExprPool& pool, ExprId load) {
  const ExprNode& n = pool[load];
  return simplify(flat_index(graph.tensor(n.source).shape, n.indices), pool.bounds());
}

IndexExpr position_of(const ExprPool& pool, const KernelOutput& output) {
  return simplify(flat_index(output.type.shape, output.index), pool.bounds());
}

std::vector<Access> accesses_of(const Graph& graph, const ExprPool& pool, const std::vector<ExprId>& roots,
                                std::span<const KernelOutput> outputs) {
  std::vector<Access> accesses;
  for (const ExprId id : reachable(pool, roots))
    if (pool[id].op == ExprOp::kLoad) accesses.push_back({position_of(graph, pool, id), pool[id].dtype});
  for (const KernelOutput& o : outputs) accesses.push_back({position_of(pool, o), o.type.dtype});
  return accesses;
}

std::vector<ExprId> values_in(const IndexExpr& place) {
  std::vector<ExprId> values;
  for (const Variable v : variables_of(place))
    if (v.kind == Variable::Kind::kValue) values.push_back(v.id);
  return values;
}

std::vector<ExprId> values_in(const ExprNode& load) {
  std::vector<ExprId> values;
  for (const IndexExpr& e : load.indices) {
    count_step();
    const std::vector<ExprId> here = values_in(e);
    values.insert(values.end(), here.begin(), here.end());
  }
  return values;
}

bool by_values(const IndexExpr& e) {
  return std::ranges::any_of(variables_of(e), [](Variable v) { return v.kind == Variable::Kind::kValue; });
}

bool is_of_indices(const ExprPool& pool, ExprId guard) {
  return std::ranges::all_of(reachable(pool, std::span(&guard, 1)), [&](ExprId id) {
    const ExprNode& n = pool[id];
    return n.op != ExprOp::kLoad && n.op != ExprOp::kReduce && std::ranges::none_of(n.indices, by_values);
  });
}

std::optional<GuardedLoad> guarded_load(const ExprPool& pool, ExprId factor) {
  GuardedLoad found;
  std::vector<DType> rounded;
  const ExprNode* n = &pool[factor];
  while (n->op == ExprOp::kSelect || n->op == ExprOp::kRound) {
    count_step();
    if (n->op == ExprOp::kSelect) {
      const ExprNode& otherwise = pool[n->args[2]];
      if (otherwise.op != ExprOp::kConstant || otherwise.real != 0 || otherwise.integer != 0) return std::nullopt;
      found.guards.push_back(n->args[0]);
    } else {
      rounded.push_back(n->dtype);
    }
    factor = n->args[n->op == ExprOp::kSelect ? 1 : 0];
    n = &pool[factor];
  }
  if (n->op != ExprOp::kLoad) return std::nullopt;
  // A select may round its padded input after the guard. That is the identity only if the dtype is the load's own.
  if (std::ranges::any_of(rounded, [&](DType to) { return to != n->dtype; })) return std::nullopt;
  if (n->args[0] != kNoExpr) found.guards.push_back(n->args[0]);
  found.guards = conjuncts(pool, std::move(found.guards));
  if (!std::ranges::all_of(found.guards, [&](ExprId g) { return is_of_indices(pool, g); })) return std::nullopt;
  found.load = factor;
  return found;
}

std::optional<IndexComparison> index_comparison(const ExprPool& pool, ExprId guard) {
  const ExprNode& n = pool[guard];
  const auto side = [&](ExprId id) -> std::optional<IndexExpr> {
    if (id == kNoExpr) return std::nullopt;
    if (pool[id].op == ExprOp::kIndex) return pool[id].indices[0];
    if (pool[id].op == ExprOp::kConstant && pool[id].type == ScalarType::kInt64) return IndexExpr(pool[id].integer);
    return std::nullopt;
  };
  const std::optional<IndexExpr> a = side(n.args[0]), b = side(n.args[1]);
  if (!a || !b) return std::nullopt;
  const IndexExpr difference = simplify(*a - *b, pool.bounds());
  switch (n.op) {
    case ExprOp::kLt:
      return IndexComparison{difference, false, -1};
    case ExprOp::kLe:
      return IndexComparison{difference, false, 0};
    case ExprOp::kGt:
      return IndexComparison{difference, true, 1};
    case ExprOp::kGe:
      return IndexComparison{difference, true, 0};
    default:
      return std::nullopt;
  }
}

std::optional<std::vector<IndexComparison>> index_comparisons(const ExprPool& pool, ExprId condition) {
  std::vector<IndexComparison> all;
  for (const ExprId id : conjuncts(pool, {condition})) {
    count_step();
    auto comparison = index_comparison(pool, id);
    if (!comparison) return std::nullopt;
    all.push_back(*std::move(comparison));
  }
  return all;
}

IndexExpr slack_of(const IndexComparison& c) {
  return c.at_least ? c.difference - c.bound : IndexExpr(c.bound) - c.difference;
}

std::optional<WholeQuotient> whole_quotient(const ExprPool& pool, ExprId guard) {
  const ExprNode& n = pool[guard];
  if (n.op != ExprOp::kLt || pool[n.args[0]].op != ExprOp::kIndex || pool[n.args[1]].op != ExprOp::kConstant ||
      pool[n.args[1]].integer != 1)
    return std::nullopt;
  const IndexExpr& left = pool[n.args[0]].indices[0];
  if (left.constant_term() != 0 || left.terms().size() != 1 || left.terms()[0].coefficient != 1 ||
      left.terms()[0].factors.size() != 1)
    return std::nullopt;
  const IndexAtom& atom = *left.terms()[0].factors[0];
  if (atom.kind != IndexAtom::Kind::kMod) return std::nullopt;
  return WholeQuotient{atom.a, atom.b};
}

}  // namespace fusec
