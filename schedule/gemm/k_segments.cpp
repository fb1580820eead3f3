#include "schedule/gemm/k_segments.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "analysis/kernel/reduction_nesting.h"

namespace fusec {
namespace {

constexpr std::size_t kMaxKSegments = 4;       // as many as a GEMM may have terms
constexpr std::int64_t kSegmentAlignment = 8;  // unaligned segments would be gathered element by element

// A summed axis, and where its segments begin; the first begins at 0.
struct KCuts {
  std::uint32_t axis = 0;
  std::set<std::int64_t> begins{0};
};

bool holds_load(const ExprPool& pool, ExprId root) {
  return std::ranges::any_of(reachable(pool, std::span(&root, 1)),
                             [&](ExprId id) { return pool[id].op == ExprOp::kLoad; });
}

// The first index along the axis where the comparison has another result than at 0.
std::optional<std::int64_t> boundary_of(const IndexComparison& c, std::uint32_t axis) {
  const Variable v{Variable::Kind::kAxis, axis};
  const std::int64_t each = coefficient_of(c.difference, v).value_or(0);
  if (each != 1 && each != -1) return std::nullopt;
  const auto at_zero = (c.difference - IndexExpr::axis(axis) * each).as_constant();
  if (!at_zero) return std::nullopt;
  // each * axis + at_zero >= bound, or <= bound
  const std::int64_t edge = each == 1 ? c.bound - *at_zero : *at_zero - c.bound;
  return (each == 1) == c.at_least ? edge : edge + 1;
}

// The segment boundaries: where the summed values, which hold no reduction, select between loads along one axis.
std::optional<KCuts> k_cuts_of(const ExprPool& pool, const ExprNode& reduction) {
  std::optional<KCuts> cuts;
  for (const ExprId id : reachable(pool, std::span(reduction.args.data(), 1))) {
    const ExprNode& choice = pool[id];
    if (choice.op != ExprOp::kSelect || !holds_load(pool, choice.args[1]) || !holds_load(pool, choice.args[2]))
      continue;
    for (const ExprId condition : reachable(pool, std::span(choice.args.data(), 1))) {
      const auto compared = index_comparison(pool, condition);
      if (!compared) continue;
      for (const std::uint32_t a : reduction.axes) {
        const auto extent = pool.extent(a).as_constant();
        const auto turn = boundary_of(*compared, a);
        if (!extent || !turn || *turn <= 0 || *turn >= *extent) continue;
        if (cuts && cuts->axis != a) return std::nullopt;
        if (!cuts) cuts = KCuts{.axis = a};
        cuts->begins.insert(*turn);
      }
    }
  }
  const auto aligned = [](std::int64_t begin) { return begin % kSegmentAlignment == 0; };
  if (!cuts || cuts->begins.size() > kMaxKSegments || !std::ranges::all_of(cuts->begins, aligned)) return std::nullopt;
  return cuts;
}

class KSegmenter {
 public:
  KSegmenter(const Kernel& kernel, std::map<ExprId, KCuts> cuts) : kernel_(kernel), cuts_(std::move(cuts)) {}

  Kernel run() {
    return change_axes(kernel_, [&](ExprPool& pool, ExprCopier& copier) {
      AxisChange change = same_axes(kernel_, pool);
      copier.rewritten = [this, &pool, values = change.values](ExprId id, const ExprCopier::Copied&) {
        const auto at = cuts_.find(id);
        return at == cuts_.end() ? kNoExpr : sum_of_segments(pool, id, at->second, values);
      };
      return change;
    });
  }

 private:
  ExprId sum_of_segments(ExprPool& pool, ExprId reduction, const KCuts& cuts,
                         const std::vector<IndexExpr>& values) const {
    ExprId sum = kNoExpr;
    for (auto begin = cuts.begins.begin(); begin != cuts.begins.end(); ++begin) {
      const auto next = std::next(begin);
      const std::int64_t end = next == cuts.begins.end() ? *kernel_.pool.extent(cuts.axis).as_constant() : *next;
      const ExprId piece = segment_of(pool, reduction, cuts.axis, *begin, end, values);
      sum = sum == kNoExpr ? piece : pool.binary(ExprOp::kAdd, sum, piece);
    }
    return sum;
  }

  ExprId segment_of(ExprPool& pool, ExprId reduction, std::uint32_t cut, std::int64_t begin, std::int64_t end,
                    const std::vector<IndexExpr>& values) const {
    const ExprNode& whole = kernel_.pool[reduction];
    const std::vector<std::uint32_t>& outputs = kernel_.outputs[0].axes;
    ExprCopier copier(kernel_.pool, pool);
    for (std::size_t i = 0; i < outputs.size(); ++i) copier.axis[outputs[i]] = values[i];
    std::vector<std::uint32_t> axes;
    for (const std::uint32_t a : whole.axes) {
      axes.push_back(pool.new_axis(a == cut ? IndexExpr(end - begin) : kernel_.pool.extent(a)));
      copier.axis[a] = IndexExpr::axis(axes.back()) + (a == cut ? begin : 0);
    }
    return pool.reduce(Reduction::kSum, std::move(axes), copier.copy(whole.args[0]));
  }

  const Kernel& kernel_;
  const std::map<ExprId, KCuts> cuts_;  // by sum
};

}  // namespace

std::optional<Kernel> with_k_segments(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  for (const KernelOutput& output : kernel.outputs)
    if (output.axes != kernel.outputs[0].axes) return std::nullopt;
  std::map<ExprId, KCuts> cuts;
  std::size_t sums = 0;
  const std::vector<ExprId> order = reachable(pool, roots_of(kernel));
  const auto holds_reduction = holding_reductions(pool, order);
  for (const ExprId id : order) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kReduce) continue;
    const bool sums_products = n.reduction == Reduction::kSum && pool[n.args[0]].op == ExprOp::kMul;
    auto found = sums_products && !holds_reduction[n.args[0]] ? k_cuts_of(pool, n) : std::nullopt;
    sums += found ? found->begins.size() : 1;
    if (found) cuts.emplace(id, *std::move(found));
  }
  if (cuts.empty() || sums > kMaxKSegments) return std::nullopt;
  return KSegmenter(kernel, std::move(cuts)).run();
}

}  // namespace fusec
