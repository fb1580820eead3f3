#include "schedule/gemm/hoist_scale.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analysis/kernel/copy_expr.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/operand_scales.h"

namespace fusec {
namespace {

// An operand: a stored number (0 if a guard does not hold) times scales that do not depend on K.
struct ScaledOperand {
  ExprId load = kNoExpr;
  std::vector<ExprId> guards, scales;
  std::vector<ExprId> guarded_scales;  // guarded loads that are constant along K where they are valid
  bool converted = false;
};

struct ScaledSum {
  ScaledOperand left, right;
};

bool is_constant_zero(const ExprNode& n) {
  return n.op == ExprOp::kConstant && n.real == 0 && n.integer == 0;
}

bool holds_reduction(const ExprPool& pool, ExprId value) {
  return std::ranges::any_of(reachable(pool, std::span(&value, 1)),
                             [&](ExprId id) { return pool[id].op == ExprOp::kReduce; });
}

bool is_narrow_load(const ExprNode& n) {
  return n.op == ExprOp::kLoad && (n.dtype == DType::kInt8 || multiplies(DType::kFloat8E4M3FN, n.dtype));
}

// True if a guarded scale is valid wherever the number is, and the same for all of K. Its guard must be one of the
// number's, and must not be the bounds check of the scale's own index.
bool scales_all_k(const ExprPool& pool, const ExprNode& scale, const ScaledOperand& operand,
                  const std::vector<std::uint32_t>& k, const Dependences& depends) {
  const ExprId guard = scale.args[0];
  if (guard != pool[operand.load].args[0] && std::ranges::find(operand.guards, guard) == operand.guards.end())
    return false;
  return std::ranges::all_of(scale.indices, [&](const IndexExpr& e) {
    return std::ranges::all_of(variables_of(e), [&](const Variable v) {
      return v.kind == Variable::Kind::kAxis && std::ranges::find(k, v.id) == k.end() &&
             !std::ranges::binary_search(depends[guard], v.id);
    });
  });
}

std::optional<ScaledOperand> scaled_operand(const ExprPool& pool, ExprId operand, const std::vector<std::uint32_t>& k,
                                            const Dependences& depends) {
  ScaledOperand found;
  std::vector<ExprId> left{operand};
  while (!left.empty()) {
    const ExprId id = left.back(), stored = without_conversion(pool, id);
    left.pop_back();
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::kMul && n.type == ScalarType::kFloat32) {
      left.push_back(n.args[1]);
      left.push_back(n.args[0]);
    } else if (n.op == ExprOp::kSelect && is_constant_zero(pool[n.args[2]])) {
      found.guards.push_back(n.args[0]);
      left.push_back(n.args[1]);
    } else if (scale_block_of(pool, id, k) == 0) {
      if (holds_reduction(pool, id)) return std::nullopt;
      found.scales.push_back(id);
    } else if (is_narrow_load(pool[stored]) && found.load == kNoExpr) {
      found.load = stored;
      found.converted = stored != id;
    } else if (n.op == ExprOp::kLoad && n.args[0] != kNoExpr) {
      found.guarded_scales.push_back(id);
    } else {
      return std::nullopt;
    }
  }
  if (found.load == kNoExpr || !std::ranges::all_of(found.guarded_scales, [&](ExprId scale) {
        return scales_all_k(pool, pool[scale], found, k, depends);
      }))
    return std::nullopt;
  return found;
}

std::optional<ScaledSum> scaled_sum(const ExprPool& pool, const ExprNode& n, const Dependences& depends) {
  if (n.op != ExprOp::kReduce || n.reduction != Reduction::kSum || n.type != ScalarType::kFloat32) return std::nullopt;
  const ExprNode& body = pool[n.args[0]];
  if (body.op != ExprOp::kMul) return std::nullopt;
  auto left = scaled_operand(pool, body.args[0], n.axes, depends),
       right = scaled_operand(pool, body.args[1], n.axes, depends);
  if (!left || !right) return std::nullopt;
  const bool whole = pool[left->load].dtype == DType::kInt8;
  if (whole != (pool[right->load].dtype == DType::kInt8) || (whole && !fits_int32_accumulator(pool, n.axes)))
    return std::nullopt;
  const auto plain = [](const ScaledOperand& f) {
    return f.scales.empty() && f.guarded_scales.empty() && !f.converted;
  };
  if (plain(*left) && plain(*right)) return std::nullopt;
  return ScaledSum{*std::move(left), *std::move(right)};
}

ExprId guarded(ExprPool& pool, const ScaledOperand& operand, const ExprCopier::Copied& copied) {
  ExprId value = copied(operand.load);
  const ScalarType type = pool[value].type;
  const ExprId zero = is_float(type) ? pool.constant(type, 0.0) : pool.constant(type, std::int64_t{0});
  for (const ExprId guard : operand.guards) value = pool.select(copied(guard), value, zero);
  return value;
}

ExprId summed_first(ExprPool& pool, const ScaledSum& sum, std::vector<std::uint32_t> k,
                    const ExprCopier::Copied& copied) {
  const ExprId product = pool.binary(ExprOp::kMul, guarded(pool, sum.left, copied), guarded(pool, sum.right, copied));
  ExprId result = pool.convert(pool.reduce(Reduction::kSum, std::move(k), product), ScalarType::kFloat32);
  for (const ScaledOperand* operand : {&sum.left, &sum.right}) {
    for (const ExprId scale : operand->scales) result = pool.binary(ExprOp::kMul, result, copied(scale));
    for (const ExprId scale : operand->guarded_scales) {
      const ExprNode load = pool[copied(scale)];
      result = pool.binary(ExprOp::kMul, result, pool.load(load.source, load.dtype, load.indices));
    }
  }
  return result;
}

}  // namespace

std::optional<Kernel> hoist_scales(const Kernel& kernel) {
  const std::vector<ExprId> order = reachable(kernel.pool, roots_of(kernel));
  if (std::ranges::none_of(order, [&](ExprId id) { return is_narrow_load(kernel.pool[id]); })) return std::nullopt;
  const auto depends = dependences(kernel.pool);
  std::map<ExprId, ScaledSum> sums;
  for (const ExprId id : order)
    if (auto sum = scaled_sum(kernel.pool, kernel.pool[id], depends)) sums.emplace(id, *std::move(sum));
  if (sums.empty()) return std::nullopt;
  return change_axes(kernel, [&](ExprPool& pool, ExprCopier& copier) {
    copier.rewritten = [&](ExprId id, const ExprCopier::Copied& copied) {
      const auto at = sums.find(id);
      if (at == sums.end()) return kNoExpr;
      std::vector<std::uint32_t> k;
      for (const std::uint32_t a : kernel.pool[id].axes) k.push_back(copier.copy_axis(a));
      return summed_first(pool, at->second, std::move(k), copied);
    };
    return same_axes(kernel, pool);
  });
}

}  // namespace fusec
