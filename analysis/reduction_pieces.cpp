#include "analysis/reduction_pieces.h"

#include <algorithm>
#include <vector>

#include "analysis/copy_expr.h"

namespace fusec {

std::optional<ExprOp> combining(Reduction reduction) {
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

ExprId reduced_at(ExprPool& pool, const ExprNode& reduction, const IndexExpr& place) {
  const ExprPool before = pool;
  ExprCopier copier(before, pool);
  for (std::uint32_t a = 0; a < before.bounds().axes.size(); ++a)
    copier.axis[a] = a == reduction.axes[0] ? place : IndexExpr::axis(a);
  return copier.copy(reduction.args[0]);
}

// Operands have smaller numbers, so that each node finds its own done.
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
