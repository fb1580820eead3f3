#include "schedule/gemm/interleaved_columns.h"

#include <utility>

#include "analysis/kernel/copy_expr.h"

namespace fusec {
namespace {

constexpr std::int64_t kPaired = 2;

// Replaces column 2j, or 2j + 1, of an operand by one column of twice as many.
class InterleavedColumnSelector {
 public:
  InterleavedColumnSelector(const ExprPool& from, ExprPool& to, std::uint32_t pair, std::uint32_t column)
      : from_(from), to_(to), pair_(pair), column_(column) {}

  // Returns nullopt if the operand does not select every second column.
  std::optional<ExprId> put(ExprId factor, std::int64_t first) {
    bool fits = true;
    ExprCopier copier(from_, to_);
    for (std::uint32_t a = 0; a < from_.bounds().axes.size(); ++a) copier.axis[a] = IndexExpr::axis(a);
    for (const ExprId id : reachable(from_, std::span(&factor, 1)))
      if (from_[id].op == ExprOp::kReduce) copier.reduction_axes[from_[id].axes] = from_[id].axes;
    copier.rewritten = [&](ExprId id, const ExprCopier::Copied&) {
      fits = fits && (from_[id].op != ExprOp::kIndex || !mentions(from_[id].indices[0], of_pair()));
      return kNoExpr;
    };
    copier.finish_load = [&](ExprId, ExprId copied) {
      const ExprNode n = to_[copied];
      std::vector<IndexExpr> indices;
      for (const IndexExpr& e : n.indices) {
        const std::optional<IndexExpr> now = put(e, first);
        fits = fits && now;
        indices.push_back(now ? *now : e);
      }
      return to_.load(n.source, n.dtype, std::move(indices), n.args[0]);
    };
    const ExprId made = copier.copy(factor);
    return fits ? std::optional(made) : std::nullopt;
  }

 private:
  Variable of_pair() const { return {Variable::Kind::kAxis, pair_}; }

  std::optional<IndexExpr> put(const IndexExpr& e, std::int64_t first) const {
    if (!mentions(e, of_pair())) return e;
    const IndexExpr rest = simplify(e - IndexExpr::axis(pair_) * kPaired - first, to_.bounds());
    if (mentions(rest, of_pair())) return std::nullopt;
    return simplify(rest + IndexExpr::axis(column_), to_.bounds());
  }

  const ExprPool& from_;
  ExprPool& to_;
  std::uint32_t pair_, column_;
};

// True for one left operand times two right ones.
bool has_two_sums(const Contraction& contraction) {
  return contraction.loops.size() == 1 && contraction.loops[0].left.size() == 1 &&
         contraction.loops[0].right.size() == 2 && contraction.loops[0].terms.size() == 2;
}

}  // namespace

std::optional<InterleavedColumns> find_interleaved_columns(const Kernel& kernel, const Contraction& contraction) {
  if (!has_two_sums(contraction) || contraction.columns.size() != 1) return std::nullopt;
  const ContractionLoop& loop = contraction.loops[0];
  InterleavedColumns paired{.kernel = kernel, .contraction = contraction};
  ExprPool& pool = paired.kernel.pool;
  const std::uint32_t pair = contraction.columns[0];
  const std::uint32_t column = pool.new_axis(simplify(pool.extent(pair) * kPaired, pool.bounds()));
  InterleavedColumnSelector one(kernel.pool, pool, pair, column);
  for (const std::size_t even : {0, 1}) {
    const ContractionTerm &first = loop.terms[even], &second = loop.terms[1 - even];
    const auto factor = one.put(loop.right[first.right], 0), other = one.put(loop.right[second.right], 1);
    if (!factor || factor != other) continue;
    const ExprId product_of_two = pool.binary(ExprOp::kMul, loop.left[0], *factor);
    const ExprId sum = pool.reduce(Reduction::kSum, loop.k, product_of_two);
    paired.even = first.reduction, paired.odd = second.reduction;
    paired.contraction.columns = {column};
    paired.contraction.loops[0].right = {*factor};
    paired.contraction.loops[0].terms = {{.reduction = sum, .left = 0, .right = 0}};
    return paired;
  }
  return std::nullopt;
}

}  // namespace fusec
