#include "schedule/gemm/expert_index.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/reduction_nesting.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

// True if the value is 0 where the guard does not hold. Also true for products of such values and finite constants.
bool is_zero_unless(const ExprPool& pool, ExprId value, ExprId guard) {
  bool zero = false;
  std::vector<ExprId> factors{value};
  while (!factors.empty()) {
    const ExprNode& n = pool[factors.back()];
    factors.pop_back();
    if ((n.op == ExprOp::kLoad || n.op == ExprOp::kSelect) && n.args[0] == guard) {
      const bool is = n.op == ExprOp::kLoad || (pool[n.args[2]].op == ExprOp::kConstant && pool[n.args[2]].real == 0 &&
                                                pool[n.args[2]].integer == 0);
      if (!is) return false;
      zero = true;
    } else if (n.op == ExprOp::kMul) {
      factors.insert(factors.end(), {n.args[0], n.args[1]});
    } else if (n.op == ExprOp::kRound || n.op == ExprOp::kConvert || n.op == ExprOp::kNeg) {
      factors.push_back(n.args[0]);
    } else if (n.op != ExprOp::kConstant || !std::isfinite(n.real)) {
      return false;
    }
  }
  return zero;
}

class ExpertIndexFinder {
 public:
  explicit ExpertIndexFinder(Kernel& kernel)
      : kernel_(kernel), pool_(kernel.pool), depends_(dependences(kernel.pool)), axes_(kernel.outputs.at(0).axes) {}

  // The value by which all sums choose. `instead` then maps the matrix loads to loads with the expert axis.
  std::optional<ExprId> run() {
    const std::vector<ExprId> order = reachable(pool_, roots_of(kernel_));
    const std::vector<std::uint32_t> nested = nesting(pool_, order);
    for (const ExprId id : order) {
      if (pool_[id].op != ExprOp::kReduce || nested[id] > 0) continue;
      const ExprNode body = pool_[pool_[id].args[0]];
      if (body.op != ExprOp::kMul) return std::nullopt;
      if (!take_operand(body.args[1], body.args[0]) && !take_operand(body.args[0], body.args[1])) return std::nullopt;
    }
    return value_ == kNoExpr ? std::nullopt : std::optional(value_);
  }

  std::uint32_t axis = 0;
  std::map<ExprId, ExprId> instead;

 private:
  // The dimension of the load whose index is a loaded value that depends on output axes only, and not on all of the
  // operand's.
  std::optional<std::size_t> expert_dimension(ExprId load, ExprId operand) const {
    const ExprNode& n = pool_[load];
    for (std::size_t d = 0; n.op == ExprOp::kLoad && d < n.indices.size(); ++d) {
      const auto v = n.indices[d].as_variable();
      if (!v || v->kind != Variable::Kind::kValue) continue;
      const auto by = depends_[v->id];
      const bool rows = !by.empty() && std::ranges::all_of(by, [&](std::uint32_t a) { return contains(axes_, a); });
      const bool columns = std::ranges::any_of(depends_[operand],
                                               [&](std::uint32_t a) { return contains(axes_, a) && !contains(by, a); });
      if (rows && columns) return d;
    }
    return std::nullopt;
  }

  bool take_operand(ExprId operand, ExprId other) {
    bool found = false;
    for (const ExprId load : reachable(pool_, std::span(&operand, 1))) {
      const auto d = expert_dimension(load, operand);
      if (!d) continue;
      ExprNode n = pool_[load];
      const ExprId value = n.indices[*d].as_variable()->id;
      if (value_ != kNoExpr && value_ != value) return false;
      // The rewritten load has no guard, so rows without a matrix read one. The other operand must then be 0.
      if (n.args[0] != kNoExpr && !is_zero_unless(pool_, other, n.args[0])) return false;
      if (value_ == kNoExpr) axis = kernel_.pool.new_axis(pool_.bounds().value_max.at(value));
      value_ = value;
      n.indices[*d] = IndexExpr::axis(axis);
      instead[load] = kernel_.pool.load(n.source, n.dtype, n.indices);
      found = true;
    }
    return found;
  }

  Kernel& kernel_;
  const ExprPool& pool_;
  Dependences depends_;
  Axes axes_;
  ExprId value_ = kNoExpr;
};

}  // namespace

std::optional<ExpertAxisKernel> with_expert_axis(const Kernel& original) {
  if (!original.pool.has_values()) return std::nullopt;
  Kernel kernel = with_shared_reduction_axes(original).value_or(original);
  ExpertIndexFinder find(kernel);
  const std::optional<ExprId> value = find.run();
  if (!value) return std::nullopt;
  ExpertAxisKernel result;
  ExprId follow[] = {*value};
  result.kernel = change_axes(
      kernel,
      [&](ExprPool& pool, ExprCopier& copier) {
        AxisChange change = same_axes(kernel, pool);
        result.expert_index.axis = pool.new_axis(kernel.pool.extent(find.axis));
        copier.axis[find.axis] = IndexExpr::axis(result.expert_index.axis);
        copier.replacement = [&find](ExprId load) {
          const auto at = find.instead.find(load);
          return at == find.instead.end() ? kNoExpr : at->second;
        };
        return change;
      },
      follow);
  result.expert_index.value = follow[0];
  return result;
}

}  // namespace fusec
