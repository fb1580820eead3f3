#include "analysis/peel_sinks.h"

#include <algorithm>
#include <set>
#include <vector>

#include "analysis/reduction_pieces.h"

namespace fusec {
namespace {

class Peeling {
 public:
  explicit Peeling(const Kernel& kernel) : kernel_(kernel), pool_(kernel_.pool) {
    for (const ExprId id : reachable(pool_, roots_of(kernel))) {
      const ExprNode& n = pool_[id];
      if (n.op == ExprOp::kReduce && n.axes.size() == 1 && n.reduction == Reduction::kSum &&
          pool_[n.args[0]].op == ExprOp::kMul)
        products_.insert(pool_.extent(n.axes[0]));
    }
  }

  std::optional<Kernel> run() {
    const bool peeled =
        rewrite_reductions(kernel_, [&](const ExprNode& n) { return has_sink(n) ? apart(n) : kNoExpr; });
    if (!peeled) return std::nullopt;
    kernel_.named.clear();
    return std::move(kernel_);
  }

 private:
  bool has_sink(const ExprNode& n) const {
    if (n.axes.size() != 1 || (n.reduction != Reduction::kSum && n.reduction != Reduction::kMax)) return false;
    const IndexExpr& extent = pool_.extent(n.axes[0]);
    return !products_.contains(extent) && products_.contains(extent - 1);
  }

  ExprId apart(const ExprNode& n) {
    const IndexExpr keys = simplify(pool_.extent(n.axes[0]) - 1, pool_.bounds());
    const auto with = [&](const IndexExpr& instead) { return reduced_at(pool_, n, instead); };
    const std::uint32_t key = pool_.new_axis(keys);
    ExprId sink = with(keys);
    const bool first = holds_product(sink);
    if (first) sink = with(0);
    const ExprId of_keys = pool_.reduce(n.reduction, {key}, with(IndexExpr::axis(key) + (first ? 1 : 0)));
    return pool_.binary(*combining(n.reduction), of_keys, sink);
  }

  // Is it made of a product otherwise than through a maximum over products? Scores are, sinks are not.
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
  std::set<IndexExpr> products_;  // lengths
};

}  // namespace

std::optional<Kernel> with_sinks_apart(const Kernel& kernel) {
  return Peeling(kernel).run();
}

}  // namespace fusec
