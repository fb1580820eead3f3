#include "schedule/gemm/contraction.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/linear_index.h"
#include "analysis/kernel/reduction_nesting.h"
#include "schedule/gemm/contraction_code_size.h"
#include "schedule/gemm/gemm_operand.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

// Limits of a block: each term has a tile of accumulators in registers, each operand a tile in shared memory.
constexpr std::size_t kMaxTerms = 4, kMaxWideTerms = 2;

ContractionMatch no_contraction(std::string_view why, ExprId blocking = kNoExpr) {
  return {.contraction = std::nullopt, .kernel = std::nullopt, .why_not = why, .blocking = blocking};
}

bool all_one(const ExprPool& pool, const Axes& axes) {
  return std::all_of(axes.begin(), axes.end(), [&](std::uint32_t a) { return pool.extent(a).is(1); });
}

// The 16-bit dtype that represents an operand exactly: float16 for float8 of either kind.
std::optional<DType> exact_mma_dtype(const ExprPool& pool, ExprId operand) {
  const ExprNode& n = pool[operand];
  const auto usable = [](DType d) { return d == DType::kFloat16 || d == DType::kBFloat16; };
  const bool stored = n.op == ExprOp::kLoad || n.op == ExprOp::kRound;
  if (stored && usable(n.dtype)) return n.dtype;
  if (stored && multiplies(DType::kFloat8E4M3FN, n.dtype)) return DType::kFloat16;
  if (n.op == ExprOp::kSelect) {
    const ExprNode& otherwise = pool[n.args[2]];
    if (otherwise.op == ExprOp::kConstant && otherwise.real == 0) return exact_mma_dtype(pool, n.args[1]);
  }
  return std::nullopt;
}

// A sum of products, and the output axes that its operands depend on.
struct ContractionReduction {
  ExprId reduction, left, right;
  std::optional<DType> tensor_dtype;
  Axes left_axes, right_axes;
};

class ContractionFinder {
 public:
  ContractionFinder(const Kernel& kernel, bool with_vectors)
      : kernel_(kernel), pool_(kernel.pool), depends_(dependences(kernel.pool)), with_vectors_(with_vectors) {}

  ContractionMatch run() {
    for (const KernelOutput& output : kernel_.outputs)
      if (output.axes != kernel_.outputs[0].axes) return no_contraction("its outputs run over different axes");
    if (writes_half_bytes(kernel_)) return no_contraction("it writes half-byte elements");
    for (const std::uint32_t a : kernel_.outputs[0].axes)
      (pool_.extent(a).is(1) ? contraction_.shared_rest : axes_).push_back(a);
    if (ContractionMatch answer = find_sums(); !answer.why_not.empty()) return answer;
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (const std::string_view why = assign_axes(sums_[i], i == 0); !why.empty())
        return no_contraction(why, sums_[i].reduction);
    if (ContractionMatch answer = check_row_values(); !answer.why_not.empty()) return answer;
    for (const ContractionReduction& sum : sums_)
      if (pool_[sum.reduction].type != pool_[sums_[0].reduction].type || sum.tensor_dtype != sums_[0].tensor_dtype)
        return no_contraction("its sums are of factors of different dtypes", sum.reduction);
    if (std::optional<Kernel> shared = with_shared_reduction_axes(kernel_)) {
      ContractionMatch answer = ContractionFinder(*shared, with_vectors_).run();
      if (answer.contraction && !answer.kernel) answer.kernel = std::move(shared);
      if (!answer.contraction) answer.blocking = sums_.back().reduction;  // too many: any of them will do
      return answer;
    }
    if (sums_.size() > max_terms())
      return no_contraction("it holds more sums of products than a block has room for", sums_.back().reduction);
    form_loops();
    if (exceeds_code_size(pool_, contraction_))
      return no_contraction("its factors are more code than a kernel should be", sums_.back().reduction);
    contraction_.tensor_dtype = sums_[0].tensor_dtype;
    return {.contraction = std::move(contraction_), .kernel = std::nullopt, .why_not = ""};
  }

 private:
  // Collects the sums of products that are not nested. Other reductions are left to check_row_values().
  ContractionMatch find_sums() {
    const std::vector<ExprId> roots = roots_of(kernel_);
    const std::vector<ExprId> order = reachable(pool_, roots);
    const std::vector<std::uint32_t> nested = nesting(pool_, order);
    std::size_t count = 0;
    std::string_view why;
    ExprId first = kNoExpr;
    for (const ExprId id : order) {
      if (pool_[id].op != ExprOp::kReduce) continue;
      ++count;
      const std::string_view why_not = nested[id] > 0 ? "a reduction stands in another" : add_sum(id);
      if (why_not.empty()) continue;
      contraction_.row_values.push_back(id);
      if (first == kNoExpr || nested[first] > 0) {
        first = id;
        why = why_not;
      }
    }
    if (!sums_.empty()) return {};
    return no_contraction(count > 1 ? "it holds more than one reduction" : why, first);
  }

  // Reductions other than sums of products must be the same for all columns.
  ContractionMatch check_row_values() {
    for (const ExprId id : contraction_.row_values)
      if ((depends_[id].empty() && !with_vectors_) || !std::ranges::all_of(depends_[id], [&](std::uint32_t a) {
            return contains(contraction_.rows, a) || contains(contraction_.batch, a);
          }))
        return no_contraction("it holds a reduction that is neither a sum of products nor one value for a row", id);
    for (const ContractionReduction& sum : sums_)
      for (const ExprId id : reachable(pool_, std::span(&sum.right, 1)))
        if (pool_[id].op == ExprOp::kReduce) return no_contraction("a factor holds a reduction", sum.reduction);
    return {};
  }

  std::size_t max_terms() const {
    const bool wide = std::ranges::any_of(sums_, [&](const ContractionReduction& s) {
      return pool_[s.reduction].type == ScalarType::kFloat64 || pool_[s.reduction].type == ScalarType::kInt64;
    });
    return wide ? kMaxWideTerms : kMaxTerms;
  }

  // Returns "", or the reason why the reduction is no sum of products.
  std::string_view add_sum(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.reduction != Reduction::kSum) return "its reduction is no sum";
    const ExprNode& body = pool_[n.args[0]];
    if (body.op != ExprOp::kMul) return "what it sums is no product of two factors";
    for (const ExprId operand : {body.args[0], body.args[1]})
      if (pool_[operand].op == ExprOp::kConstant) return "a factor of what it sums is a number";
    ContractionReduction sum{id, body.args[0], body.args[1], std::nullopt, {}, {}};
    if (n.type == ScalarType::kFloat32) {
      sum.tensor_dtype = exact_mma_dtype(pool_, sum.left);
      if (exact_mma_dtype(pool_, sum.right) != sum.tensor_dtype) sum.tensor_dtype.reset();
    }
    const auto left = depends_[sum.left], right = depends_[sum.right];
    for (const std::uint32_t k_axis : n.axes)
      if (!contains(left, k_axis) && !contains(right, k_axis)) return "neither factor runs along a summed axis";
    for (const std::uint32_t a : axes_) {
      if (!contains(left, a) && !contains(right, a)) return "neither factor depends on one of the output's axes";
      if (contains(left, a)) sum.left_axes.push_back(a);
      if (contains(right, a)) sum.right_axes.push_back(a);
    }
    if (all_one(pool_, n.axes)) return "a factor has no output axis of its own: a product of a matrix and a vector";
    for (const std::uint32_t a : sum.left_axes)
      if (contains(sum.right_axes, a) && !contains(batch_, a)) batch_.push_back(a);
    sums_.push_back(std::move(sum));
    return "";
  }

  Axes own(const Axes& axes) const {
    Axes mine;
    for (const std::uint32_t a : axes)
      if (!contains(batch_, a)) mine.push_back(a);
    return mine;
  }

  // The first sum determines rows and columns; the others must have the same.
  std::string_view assign_axes(ContractionReduction& sum, bool first) {
    const auto swap_operands = [&] {
      std::swap(sum.left, sum.right);
      std::swap(sum.left_axes, sum.right_axes);
    };
    if (first) {
      // The last output axis is a column, so that neighbouring threads store neighbouring elements.
      if (!axes_.empty() && contains(own(sum.left_axes), axes_.back())) swap_operands();
      contraction_.rows = own(sum.left_axes);
      contraction_.columns = own(sum.right_axes);
      for (const std::uint32_t a : axes_)
        if (contains(batch_, a)) contraction_.batch.push_back(a);
      if ((contraction_.rows.empty() && !with_vectors_) || contraction_.columns.empty())
        return "a factor has no output axis of its own: a product of a matrix and a vector";
      return "";
    }
    if (own(sum.left_axes) != contraction_.rows) swap_operands();
    if (own(sum.left_axes) != contraction_.rows || own(sum.right_axes) != contraction_.columns)
      return "the factors of its sums run along different output axes";
    return "";
  }

  static std::size_t place_in(std::vector<ExprId>& operands, ExprId operand) {
    const auto at = std::find(operands.begin(), operands.end(), operand);
    if (at != operands.end()) return static_cast<std::size_t>(at - operands.begin());
    operands.push_back(operand);
    return operands.size() - 1;
  }

  void form_loops() {
    for (const ContractionReduction& sum : sums_) {
      const Axes& k = pool_[sum.reduction].axes;
      auto loop = std::ranges::find_if(contraction_.loops, [&](const ContractionLoop& l) { return l.k == k; });
      if (loop == contraction_.loops.end()) {
        contraction_.loops.push_back({.k = k, .left = {}, .right = {}, .terms = {}});
        loop = contraction_.loops.end() - 1;
      }
      const std::size_t left = place_in(loop->left, sum.left), right = place_in(loop->right, sum.right);
      loop->terms.push_back({sum.reduction, left, right});
    }
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  Dependences depends_;
  bool with_vectors_;
  std::vector<ContractionReduction> sums_;
  Axes axes_, batch_;  // output axes with more than one element; axes on which both operands of some sum depend
  Contraction contraction_;
};

}  // namespace

std::size_t term_count(const Contraction& contraction) {
  std::size_t count = 0;
  for (const ContractionLoop& loop : contraction.loops) count += loop.terms.size();
  return count;
}

std::optional<Kernel> with_shared_reduction_axes(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  const std::vector<ExprId> order = reachable(pool, roots_of(kernel));
  const std::vector<std::uint32_t> level = nesting(pool, order);
  std::map<std::pair<std::uint32_t, std::vector<IndexExpr>>, std::vector<Axes>> alike;
  bool differ = false;
  for (const ExprId id : order) {
    if (pool[id].op != ExprOp::kReduce) continue;
    std::vector<IndexExpr> extents;
    for (const std::uint32_t a : pool[id].axes) extents.push_back(pool.extent(a));
    if (!std::ranges::all_of(extents, over_symbols)) continue;
    std::vector<Axes>& same = alike[{level[id], extents}];
    if (std::find(same.begin(), same.end(), pool[id].axes) == same.end()) same.push_back(pool[id].axes);
    differ = differ || same.size() > 1;
  }
  if (!differ) return std::nullopt;
  return change_axes(kernel, [&](ExprPool& to, ExprCopier& copier) {
    AxisChange change = same_axes(kernel, to);
    for (const auto& [key, all] : alike) {
      std::vector<IndexExpr> shared;
      for (const IndexExpr& e : key.second) shared.push_back(IndexExpr::axis(to.new_axis(e)));
      for (const Axes& axes : all)
        for (std::size_t i = 0; i < axes.size(); ++i) copier.axis[axes[i]] = shared[i];
    }
    return change;
  });
}

ContractionMatch find_contraction(const Kernel& kernel, bool with_vectors) {
  return ContractionFinder(kernel, with_vectors).run();
}

}  // namespace fusec
