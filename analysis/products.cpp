#include "analysis/products.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/copy_expr.h"
#include "analysis/kernel_forms.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

// What a block has room for: each term has a tile of sums in registers, each factor one in shared memory.
constexpr std::size_t kMostTerms = 4, kMostWideTerms = 2;

ProductAnswer no_product(std::string_view why, ExprId blocking = kNoExpr) {
  return {.product = std::nullopt, .kernel = std::nullopt, .why_not = why, .blocking = blocking};
}

bool contains(const Axes& axes, std::uint32_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

bool all_one(const ExprPool& pool, const Axes& axes) {
  return std::all_of(axes.begin(), axes.end(), [&](std::uint32_t a) { return pool.extent(a).is(1); });
}

bool over_symbols(const IndexExpr& e) {
  return std::ranges::all_of(variables_of(e), [](const Variable v) { return v.kind == Variable::Kind::kSymbol; });
}

// The 16-bit dtype on whose grid a factor lies.
std::optional<DType> tensor_core_dtype(const ExprPool& pool, ExprId factor) {
  const ExprNode& n = pool[factor];
  const auto usable = [](DType d) { return d == DType::kFloat16 || d == DType::kBFloat16; };
  if ((n.op == ExprOp::kLoad || n.op == ExprOp::kRound) && usable(n.dtype)) return n.dtype;
  if (n.op == ExprOp::kSelect) {
    const ExprNode& otherwise = pool[n.args[2]];
    if (otherwise.op == ExprOp::kConstant && otherwise.real == 0) return tensor_core_dtype(pool, n.args[1]);
  }
  return std::nullopt;
}

// A sum of products, and on which of the output's axes its factors depend.
struct Sum {
  ExprId reduction, left, right;
  std::optional<DType> tensor_dtype;
  Axes left_axes, right_axes;
};

class FindProduct {
 public:
  explicit FindProduct(const Kernel& kernel)
      : kernel_(kernel), pool_(kernel.pool), depends_(dependences(kernel.pool)) {}

  ProductAnswer run() {
    for (const KernelOutput& output : kernel_.outputs)
      if (output.axes != kernel_.outputs[0].axes) return no_product("its outputs run over different axes");
    if (writes_half_bytes(kernel_)) return no_product("it writes half-byte elements");
    for (const ExprId id : reachable(pool_, roots_of(kernel_)))
      if (pool_[id].op == ExprOp::kReduce) reductions_.push_back(id);
    for (const std::uint32_t a : kernel_.outputs[0].axes)
      (pool_.extent(a).is(1) ? product_.shared_rest : axes_).push_back(a);
    for (const ExprId id : reductions_)
      if (const std::string_view why = add_sum(id); !why.empty())
        return no_product(reductions_.size() > 1 ? "it holds more than one reduction" : why, id);
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (const std::string_view why = place_axes(sums_[i], i == 0); !why.empty())
        return no_product(why, sums_[i].reduction);
    for (const Sum& sum : sums_)
      if (pool_[sum.reduction].type != pool_[sums_[0].reduction].type || sum.tensor_dtype != sums_[0].tensor_dtype)
        return no_product("its sums are of factors of different dtypes", sum.reduction);
    if (const std::optional<Kernel> shared = share_depths()) {
      ProductAnswer answer = FindProduct(*shared).run();
      if (answer.product && !answer.kernel) answer.kernel = shared;
      if (!answer.product) answer.blocking = sums_.back().reduction;  // too many: any will do
      return answer;
    }
    if (sums_.size() > most_terms())
      return no_product("it holds more sums of products than a block has room for", sums_.back().reduction);
    form_loops();
    product_.tensor_dtype = sums_[0].tensor_dtype;
    return {.product = std::move(product_), .kernel = std::nullopt, .why_not = ""};
  }

 private:
  bool on_output(std::uint32_t axis) const { return contains(axes_, axis); }

  std::size_t most_terms() const {
    const bool wide = std::ranges::any_of(sums_, [&](const Sum& s) {
      return pool_[s.reduction].type == ScalarType::kFloat64 || pool_[s.reduction].type == ScalarType::kInt64;
    });
    return wide ? kMostWideTerms : kMostTerms;
  }

  // "" or why the reduction is no sum of products.
  std::string_view add_sum(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.reduction != Reduction::kSum) return "its reduction is no sum";
    const ExprNode& body = pool_[n.args[0]];
    if (body.op != ExprOp::kMul) return "what it sums is no product of two factors";
    for (const ExprId inner : reachable(pool_, std::span(n.args.data(), 1)))
      if (pool_[inner].op == ExprOp::kReduce) return "a factor holds a reduction";
    Sum sum{id, body.args[0], body.args[1], std::nullopt, {}, {}};
    if (n.type == ScalarType::kFloat32) {
      sum.tensor_dtype = tensor_core_dtype(pool_, sum.left);
      if (tensor_core_dtype(pool_, sum.right) != sum.tensor_dtype) sum.tensor_dtype.reset();
    }
    const Axes &left = depends_[sum.left], &right = depends_[sum.right];
    for (const std::uint32_t k : n.axes)
      if (!contains(left, k) && !contains(right, k)) return "neither factor runs along a summed axis";
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

  // Rows and columns as the first sum has them; the others must have them alike.
  std::string_view place_axes(Sum& sum, bool first) {
    const auto turn = [&] {
      std::swap(sum.left, sum.right);
      std::swap(sum.left_axes, sum.right_axes);
    };
    if (first) {
      // The last axis of the result belongs to the columns: neighbouring threads then store neighbouring elements.
      if (!axes_.empty() && contains(own(sum.left_axes), axes_.back())) turn();
      product_.rows = own(sum.left_axes);
      product_.columns = own(sum.right_axes);
      for (const std::uint32_t a : axes_)
        if (contains(batch_, a)) product_.batch.push_back(a);
      if (product_.rows.empty() || product_.columns.empty())
        return "a factor has no output axis of its own: a product of a matrix and a vector";
      return "";
    }
    if (own(sum.left_axes) != product_.rows) turn();
    if (own(sum.left_axes) != product_.rows || own(sum.right_axes) != product_.columns)
      return "the factors of its sums run along different output axes";
    return "";
  }

  // Where several sums go over depths of the same extents, each over axes of its own: the kernel in which they have the
  // same axes, so that equal factors are one expression.
  std::optional<Kernel> share_depths() const {
    std::map<std::vector<IndexExpr>, std::vector<Axes>> by_extents;
    bool differ = false;
    for (const Sum& sum : sums_) {
      const std::vector<IndexExpr> wanted = extents(sum);
      if (!std::ranges::all_of(wanted, over_symbols)) continue;
      std::vector<Axes>& same = by_extents[wanted];
      const Axes& axes = pool_[sum.reduction].axes;
      if (std::find(same.begin(), same.end(), axes) == same.end()) same.push_back(axes);
      differ = differ || same.size() > 1;
    }
    if (!differ) return std::nullopt;
    return change_axes(kernel_, [&](ExprPool& pool, ExprCopier& copier) {
      AxisChange change = same_axes(kernel_, pool);
      for (const auto& [wanted, all] : by_extents) {
        std::vector<IndexExpr> shared;
        for (const IndexExpr& e : wanted) shared.push_back(IndexExpr::axis(pool.new_axis(e)));
        for (const Axes& axes : all)
          for (std::size_t i = 0; i < axes.size(); ++i) copier.axis[axes[i]] = shared[i];
      }
      return change;
    });
  }

  std::vector<IndexExpr> extents(const Sum& sum) const {
    std::vector<IndexExpr> result;
    for (const std::uint32_t a : pool_[sum.reduction].axes) result.push_back(pool_.extent(a));
    return result;
  }

  static std::size_t place_in(std::vector<ExprId>& factors, ExprId factor) {
    const auto at = std::find(factors.begin(), factors.end(), factor);
    if (at != factors.end()) return static_cast<std::size_t>(at - factors.begin());
    factors.push_back(factor);
    return factors.size() - 1;
  }

  void form_loops() {
    for (const Sum& sum : sums_) {
      const Axes& depth = pool_[sum.reduction].axes;
      auto loop = std::ranges::find_if(product_.loops, [&](const ProductLoop& l) { return l.depth == depth; });
      if (loop == product_.loops.end()) {
        product_.loops.push_back({.depth = depth, .left = {}, .right = {}, .terms = {}});
        loop = product_.loops.end() - 1;
      }
      const std::size_t left = place_in(loop->left, sum.left), right = place_in(loop->right, sum.right);
      loop->terms.push_back({sum.reduction, left, right});
    }
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  std::vector<Axes> depends_;
  std::vector<ExprId> reductions_;
  std::vector<Sum> sums_;
  Axes axes_, batch_;  // output axes of more than one element; those on which both factors of some sum depend
  Product product_;
};

}  // namespace

std::size_t term_count(const Product& product) {
  std::size_t count = 0;
  for (const ProductLoop& loop : product.loops) count += loop.terms.size();
  return count;
}

ProductAnswer find_product(const Kernel& kernel) {
  return FindProduct(kernel).run();
}

}  // namespace fusec
