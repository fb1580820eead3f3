#include "schedule/reduction/row_exponentials.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusec {
namespace {

constexpr double kLog2OfE = 1.4426950408889634, kLargest = 1 << 30;

// The exponentials below one maximum, with their sums and reciprocals.
class Family {
 public:
  Family(const ExprPool& pool, std::set<ExprId> exponentials) : pool_(pool), exponentials_(std::move(exponentials)) {
    for (ExprId id = 0; id < pool.size(); ++id) {
      const ExprNode& n = pool[id];
      if (n.op == ExprOp::kReduce && n.reduction == Reduction::kSum && exponentials_.contains(n.args[0]))
        sums_.insert(id);
      // Terms outside of the row (schedule/reduction/row_folding).
      if (n.op == ExprOp::kAdd && sums_.contains(n.args[0]) && exponentials_.contains(n.args[1])) sums_.insert(id);
      if (n.op == ExprOp::kReciprocal && sums_.contains(n.args[0])) reciprocals_.insert(id);
    }
  }

  bool has(ExprId id) const { return exponentials_.contains(id) || sums_.contains(id) || reciprocals_.contains(id); }

  // True if exponentials, sums and reciprocals are used only by each other and by quotients.
  bool is_used_by(ExprId id) const {
    const ExprNode& n = pool_[id];
    const auto is_pair = [&](ExprId a, ExprId b) { return exponentials_.contains(a) && reciprocals_.contains(b); };
    return has(id) || (n.op == ExprOp::kMul && (is_pair(n.args[0], n.args[1]) || is_pair(n.args[1], n.args[0])));
  }

  const std::set<ExprId>& exponentials() const { return exponentials_; }
  bool has_quotients() const { return !reciprocals_.empty(); }

 private:
  const ExprPool& pool_;
  std::set<ExprId> exponentials_, sums_, reciprocals_;
};

}  // namespace

bool is_maximum_of_row(const ExprPool& pool, ExprId id) {
  const ExprNode* n = &pool[id];
  while (n->op == ExprOp::kMax) n = &pool[n->args[0]];
  return n->op == ExprOp::kReduce && n->reduction == Reduction::kMax;
}

std::vector<bool> shared_exponentials(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  std::vector<bool> shared(pool.size(), false);
  if (kernel.exact_steps || kernel.numerics.precise_math) return shared;
  const std::vector<ExprId> roots = roots_of(kernel), nodes = reachable(pool, roots);
  std::map<ExprId, std::set<ExprId>> below;  // by maximum
  for (const ExprId id : nodes) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kExp || n.type != ScalarType::kFloat32) continue;
    const ExprNode& difference = pool[n.args[0]];
    if (difference.op == ExprOp::kSub && is_maximum_of_row(pool, difference.args[1]))
      below[difference.args[1]].insert(id);
  }
  for (auto& [maximum, exponentials] : below) {
    const Family family(pool, std::move(exponentials));
    const bool stored = std::ranges::any_of(roots, [&](ExprId root) { return family.has(root); });
    const bool alone = std::ranges::all_of(nodes, [&](ExprId id) {
      return family.is_used_by(id) || std::ranges::none_of(pool[id].args, [&](ExprId a) { return family.has(a); });
    });
    if (stored || !alone || !family.has_quotients()) continue;
    for (const ExprId id : family.exponentials()) shared[id] = true;
  }
  return shared;
}

ExprId shared_power_of_two(const ExprPool& from, ExprId exponential, ExprPool& to, const ExprCopier::Copied& copied) {
  const ExprNode& difference = from[from[exponential].args[0]];
  const ExprId x = copied(difference.args[0]), maximum = copied(difference.args[1]);
  const auto number = [&](double value) { return to.constant(ScalarType::kFloat32, value); };
  const ExprId is_large = to.binary(ExprOp::kGe, to.unary(ExprOp::kAbs, maximum), number(kLargest));
  const ExprId c = to.select(is_large, number(1), number(kLog2OfE));
  ExprNode sum{.op = ExprOp::kFma, .type = ScalarType::kFloat32};
  sum.args = {x, c, to.unary(ExprOp::kNeg, to.binary(ExprOp::kMul, maximum, c))};
  return to.unary(ExprOp::kExp2, to.add(std::move(sum)));
}

bool is_shared_power_of_two(const ExprPool& pool, const ExprNode& n) {
  if (n.op != ExprOp::kExp2 || pool[n.args[0]].op != ExprOp::kFma) return false;
  const ExprNode& shift = pool[pool[n.args[0]].args[2]];
  return shift.op == ExprOp::kNeg && pool[shift.args[0]].op == ExprOp::kMul &&
         is_maximum_of_row(pool, pool[shift.args[0]].args[0]);
}

}  // namespace fusec
