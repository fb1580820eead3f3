#include "analysis/kernel/reduction_rewrites.h"

#include <algorithm>
#include <vector>

#include "analysis/kernel/copy_expr.h"

namespace fusec {

std::optional<ExprOp> combining_op(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return ExprOp::kAdd;
    case Reduction::kProd:
      return ExprOp::kMul;
    case Reduction::kMax:
      return ExprOp::kMax;
    case Reduction::kMin:
      return ExprOp::kMin;
    case Reduction::kAny:
      return ExprOp::kOr;
    case Reduction::kAll:
      return ExprOp::kAnd;
    case Reduction::kArgMax:
    case Reduction::kArgMin:
      return std::nullopt;
  }
  return std::nullopt;
}

ExprId reduction_at(const ExprPool& pool, ExprId id) {
  const ExprNode& n = pool[id];
  if (n.op == ExprOp::kReduce) return combining_op(n.reduction) ? id : kNoExpr;
  if (n.op != ExprOp::kDiv || !is_float(n.type) || pool[n.args[1]].op != ExprOp::kConstant) return kNoExpr;
  const ExprNode& over = pool[n.args[0]];
  return over.op == ExprOp::kReduce && over.reduction == Reduction::kSum ? n.args[0] : kNoExpr;
}

// Divides each element instead of the sum for a mean: the joined sum could overflow where the means do not.
void join_nested_reductions(Kernel& kernel) {
  ExprPool& pool = kernel.pool;
  const bool joined = rewrite_reductions(kernel, [&](const ExprNode& outer) {
    const ExprId id = reduction_at(pool, outer.args[0]);
    if (id == kNoExpr || pool[id].reduction != outer.reduction) return kNoExpr;
    const ExprNode inner = pool[id], over = pool[outer.args[0]];
    const std::vector<ExprId> within = reachable(pool, std::span(inner.args.data(), 1));
    if (std::ranges::any_of(within, [&](ExprId e) { return pool[e].op == ExprOp::kReduce; })) return kNoExpr;
    const Dependences depends(pool);
    if (!std::ranges::all_of(outer.axes, [&](std::uint32_t a) { return std::ranges::binary_search(depends[id], a); }))
      return kNoExpr;
    // The joined reduction gets new axes, because other reductions may use the old ones.
    const ExprPool before = pool;
    ExprCopier copier(before, pool);
    for (std::uint32_t a = 0; a < before.bounds().axes.size(); ++a) copier.axis[a] = IndexExpr::axis(a);
    std::vector<std::uint32_t> axes;
    for (const std::vector<std::uint32_t>& over_these : {outer.axes, inner.axes})
      for (const std::uint32_t a : over_these) {
        axes.push_back(pool.new_axis(pool.extent(a)));
        copier.axis[a] = IndexExpr::axis(axes.back());
      }
    ExprId body = copier.copy(inner.args[0]);
    if (over.op == ExprOp::kDiv)
      body = pool.binary(ExprOp::kMul, body, pool.constant(over.type, 1 / pool[over.args[1]].real));
    return pool.reduce(outer.reduction, std::move(axes), body);
  });
  if (!joined) return;
  const std::vector<ExprId> left = reachable(pool, roots_of(kernel));
  std::erase_if(kernel.named, [&](const NamedExpr& n) { return std::ranges::find(left, n.expr) == left.end(); });
}

ExprId reduction_operand_at(ExprPool& pool, const ExprNode& reduction, const IndexExpr& place) {
  const ExprPool before = pool;
  ExprCopier copier(before, pool);
  for (std::uint32_t a = 0; a < before.bounds().axes.size(); ++a)
    copier.axis[a] = a == reduction.axes[0] ? place : IndexExpr::axis(a);
  return copier.copy(reduction.args[0]);
}

// Operands have smaller ids than their users, so one pass in id order suffices.
bool rewrite_reductions(Kernel& kernel, const std::function<ExprId(const ExprNode& reduction)>& rewritten) {
  ExprPool& pool = kernel.pool;
  const std::vector<ExprId> roots = roots_of(kernel);
  const ExprId last = *std::ranges::max_element(roots);
  std::vector<ExprId> now(last + std::size_t{1});
  bool changed_any = false;
  for (ExprId id = 0; id <= last; ++id) {
    ExprNode n = pool[id];
    bool changed = false;
    for (ExprId& a : n.args) {
      if (a == kNoExpr) continue;
      changed = changed || now[a] != a;
      a = now[a];
    }
    now[id] = changed ? pool.add(n) : id;
    if (n.op != ExprOp::kReduce) continue;
    const ExprId instead = rewritten(n);
    if (instead == kNoExpr) continue;
    now[id] = instead;
    changed_any = true;
  }
  for (KernelOutput& output : kernel.outputs) output.expr = now[output.expr];
  std::erase_if(kernel.named, [&](const NamedExpr& named) { return named.expr > last; });
  for (NamedExpr& named : kernel.named) named.expr = now[named.expr];
  return changed_any;
}

}  // namespace fusec
