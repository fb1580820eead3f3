#include "schedule/attention/peel_sinks.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "analysis/kernel/reduction_rewrites.h"

namespace fusec {
namespace {

using Lengths = std::set<IndexExpr>;

Lengths lengths_of_products(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  Lengths products;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kReduce && n.axes.size() == 1 && n.reduction == Reduction::kSum &&
        pool[n.args[0]].op == ExprOp::kMul)
      products.insert(pool.extent(n.axes[0]));
  }
  return products;
}

bool has_sink(const ExprPool& pool, const Lengths& products, const ExprNode& n) {
  if (n.op != ExprOp::kReduce || n.axes.size() != 1) return false;
  if (n.reduction != Reduction::kSum && n.reduction != Reduction::kMax) return false;
  const IndexExpr& extent = pool.extent(n.axes[0]);
  return !products.contains(extent) && products.contains(extent - 1);
}

class Peeling {
 public:
  Peeling(const Kernel& kernel, Lengths products)
      : kernel_(kernel), pool_(kernel_.pool), products_(std::move(products)) {}

  std::optional<Kernel> run() {
    const bool peeled = rewrite_reductions(
        kernel_, [&](const ExprNode& n) { return has_sink(pool_, products_, n) ? apart(n) : kNoExpr; });
    if (!peeled) return std::nullopt;
    kernel_.named.clear();
    return std::move(kernel_);
  }

 private:
  ExprId apart(const ExprNode& n) {
    const IndexExpr keys = simplify(pool_.extent(n.axes[0]) - 1, pool_.bounds());
    const auto with = [&](const IndexExpr& instead) { return reduction_operand_at(pool_, n, instead); };
    const std::uint32_t key = pool_.new_axis(keys);
    ExprId sink = with(keys);
    const bool first = holds_product(sink);
    if (first) sink = with(0);
    const ExprId of_keys = pool_.reduce(n.reduction, {key}, with(IndexExpr::axis(key) + (first ? 1 : 0)));
    return pool_.binary(*combining_op(n.reduction), of_keys, sink);
  }

  // Returns whether `root` is made of a product, other than through a maximum over products. Scores are, sinks are not.
  bool holds_product(ExprId root) const {
    std::set<ExprId> seen;
    std::vector<ExprId> stack{root};
    while (!stack.empty()) {
      const ExprId id = stack.back();
      stack.pop_back();
      const ExprNode& n = pool_[id];
      if (!seen.insert(id).second || (n.op == ExprOp::kReduce && n.reduction == Reduction::kMax)) continue;
      if (n.op == ExprOp::kReduce && pool_[n.args[0]].op == ExprOp::kMul) return true;
      for (const ExprId a : n.args)
        if (a != kNoExpr) stack.push_back(a);
    }
    return false;
  }

  Kernel kernel_;
  ExprPool& pool_;
  const Lengths products_;
};

}  // namespace

std::optional<Kernel> peel_sinks(const Kernel& kernel) {
  Lengths products = lengths_of_products(kernel);
  // Tests all expressions that rewrite_reductions visits, whether an output needs them or not.
  const std::vector<ExprId> roots = roots_of(kernel);
  const ExprId last = *std::ranges::max_element(roots);
  bool any = false;
  for (ExprId id = 0; id <= last && !any; ++id) any = has_sink(kernel.pool, products, kernel.pool[id]);
  if (!any) return std::nullopt;
  return Peeling(kernel, std::move(products)).run();
}

}  // namespace fusec
