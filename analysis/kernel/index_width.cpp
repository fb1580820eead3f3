#include "analysis/kernel/index_width.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "analysis/kernel/loads.h"

namespace fusec {
namespace {

constexpr std::int64_t kGreatestInt = std::numeric_limits<std::int32_t>::max();

bool is_extreme(const ExprNode& n) {
  return n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin;
}

}  // namespace

bool fits_int32(const IndexExpr& e, const Bounds& bounds) {
  if (e.constant_term() > kGreatestInt || e.constant_term() < -kGreatestInt) return false;
  std::int64_t sum = std::abs(e.constant_term());
  for (const IndexTerm& term : e.terms()) {
    const Range range = range_of(from_terms({term}, 0), bounds);
    if (range.min < -kGreatestInt || range.max > kGreatestInt) return false;
    sum += std::max(std::abs(range.min), std::abs(range.max));
    // A product is computed step by step: each partial product must fit, even if another factor can be 0.
    if (term.coefficient > kGreatestInt || term.coefficient < -kGreatestInt) return false;
    IndexExpr product(1);
    for (const IndexAtomPtr& factor : term.factors) {
      product *= from_terms({{1, {factor}}}, 0);
      const Range partial = range_of(product, bounds);
      if (partial.min < -kGreatestInt || partial.max > kGreatestInt) return false;
      if (factor->kind != IndexAtom::Kind::kVariable &&
          (!fits_int32(factor->a, bounds) || !fits_int32(factor->b, bounds)))
        return false;
    }
  }
  if (sum <= kGreatestInt) return true;
  // Positive and negative terms are not all at their extremes at once, so both partial sums are checked.
  IndexExpr more = std::max<std::int64_t>(0, e.constant_term()), less = std::max<std::int64_t>(0, -e.constant_term());
  for (const IndexTerm& term : e.terms()) {
    const IndexExpr alone = from_terms({term}, 0);
    const Range range = range_of(alone, bounds);
    if (range.min < 0 && range.max > 0) return false;
    (range.min < 0 ? less : more) += range.min < 0 ? -alone : alone;
  }
  return proves_nonnegative(kGreatestInt - more, bounds) && proves_nonnegative(kGreatestInt - less, bounds);
}

bool needs_wide_index(const Kernel& kernel, const Graph& graph, const IndexExpr& threads) {
  const Bounds& bounds = kernel.pool.bounds();
  if (!fits_int32(threads + 4096, bounds)) return true;
  for (const KernelOutput& output : kernel.outputs) {
    if (!fits_int32(simplify(flat_index(output.type.shape, output.index), bounds), bounds)) return true;
  }
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kReduce)
      for (const std::uint32_t a : n.axes)
        if (!fits_int32(kernel.pool.extent(a), bounds)) return true;
    if (n.op == ExprOp::kReduce && is_extreme(n)) {
      IndexExpr count = 1;
      for (const std::uint32_t a : n.axes) count *= kernel.pool.extent(a);
      if (!fits_int32(count, bounds)) return true;
    }
    for (const IndexExpr& e : n.indices)
      if (!fits_int32(e, bounds)) return true;
    if (n.op == ExprOp::kLoad && !fits_int32(position_of(graph, kernel.pool, id), bounds)) return true;
  }
  return false;
}

}  // namespace fusec
