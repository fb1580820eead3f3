#include "analysis/kernel/subpixel_phases.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"

namespace fusec {
namespace {

// The condition `(output + constant - dilation * tap) % stride == 0`.
struct SubpixelPhases {
  std::uint32_t output, tap;
  std::int64_t stride, dilation, constant;

  std::int64_t common() const { return std::gcd(stride, dilation); }
  std::int64_t period() const { return stride / common(); }  // an output meets every period-th tap
};

std::optional<SubpixelPhases> phases_of(const ExprPool& pool, ExprId guard, const std::vector<std::uint32_t>& outputs,
                                        const std::vector<std::uint32_t>& summed) {
  const auto quotient = whole_quotient(pool, guard);
  const auto stride = quotient ? quotient->divisor.as_constant() : std::nullopt;
  if (!stride || *stride < 2) return std::nullopt;
  SubpixelPhases found{
      .output = 0, .tap = 0, .stride = *stride, .dilation = 0, .constant = quotient->dividend.constant_term()};
  int outputs_seen = 0, taps_seen = 0;
  for (const IndexTerm& term : quotient->dividend.terms()) {
    if (term.factors.size() != 1 || term.factors[0]->kind != IndexAtom::Kind::kVariable) return std::nullopt;
    const Variable v = term.factors[0]->variable;
    if (v.kind != Variable::Kind::kAxis) return std::nullopt;
    const bool output = std::ranges::find(outputs, v.id) != outputs.end();
    const bool tap = std::ranges::find(summed, v.id) != summed.end();
    if (output && term.coefficient == 1 && ++outputs_seen == 1)
      found.output = v.id;
    else if (tap && term.coefficient < 0 && ++taps_seen == 1)
      found.tap = v.id, found.dilation = -term.coefficient;
    else
      return std::nullopt;
  }
  // Otherwise two phases would write the same last elements.
  if (outputs_seen == 1 && !proves_multiple_of(pool.extent(found.output), found.stride, pool.bounds()))
    return std::nullopt;
  if (outputs_seen != 1 || taps_seen != 1 || !pool.extent(found.tap).as_constant()) return std::nullopt;
  return found;
}

std::vector<SubpixelPhases> find_subpixel_phases(const Kernel& kernel, ExprId reduction) {
  const ExprPool& pool = kernel.pool;
  std::vector<SubpixelPhases> found;
  for (const ExprId id : reachable(pool, std::span(&reduction, 1))) {
    const auto phases = phases_of(pool, id, kernel.outputs[0].axes, pool[reduction].axes);
    const auto meets = [&](const SubpixelPhases& other) {
      return other.output == phases->output || other.tap == phases->tap;
    };
    if (phases && std::ranges::none_of(found, meets)) found.push_back(*phases);
  }
  return found;
}

class Splitting {
 public:
  Splitting(const Kernel& kernel, ExprId reduction, std::vector<SubpixelPhases> phases)
      : kernel_(kernel), reduction_(reduction), phases_(std::move(phases)) {}

  Kernel run() {
    return change_axes(kernel_, [&](ExprPool& pool, ExprCopier& copier) {
      const AxisChange change = split(pool, copier);
      copier.finish_load = [this, &pool](ExprId load, ExprId copied) { return guarded(pool, load, copied); };
      return change;
    });
  }

 private:
  // Inserts the phase axes before the split axes and after the axes in front of them (channels). Neighbouring threads
  // then compute neighbouring elements of one phase, and the order matches the weights, whose taps follow the channels.
  AxisChange split(ExprPool& pool, ExprCopier& copier) {
    AxisChange change;
    std::vector<std::uint32_t> phases, others;
    std::size_t before = 0;
    for (const std::uint32_t axis : kernel_.outputs[0].axes) {
      const auto split = std::ranges::find(phases_, axis, &SubpixelPhases::output);
      if (split != phases_.end()) {
        if (phases.empty()) before = others.size();
        change.values.push_back(place(pool, copier, *split, phases, others));
        continue;
      }
      others.push_back(pool.new_axis(kernel_.pool.extent(axis)));
      change.values.push_back(IndexExpr::axis(others.back()));
    }
    others.insert(others.begin() + static_cast<std::ptrdiff_t>(before), phases.begin(), phases.end());
    change.new_axes = std::move(others);
    std::vector<std::uint32_t> summed;
    const std::vector<std::uint32_t>& axes = kernel_.pool[reduction_].axes;
    copier.axis.resize(std::max<std::size_t>(copier.axis.size(), kernel_.pool.bounds().axes.size()));
    for (const std::uint32_t axis : axes) {
      if (std::ranges::find(phases_, axis, &SubpixelPhases::tap) != phases_.end()) {
        if (steps_.contains(axis)) summed.push_back(steps_.at(axis));
        continue;
      }
      summed.push_back(pool.new_axis(kernel_.pool.extent(axis)));
      copier.axis[axis] = IndexExpr::axis(summed.back());
    }
    if (summed.empty()) summed.push_back(pool.new_axis(1));
    copier.reduction_axes[axes] = summed;
    return change;
  }

  // Returns the output axis as an expression of new axes, and stores the tap's expression in the copier.
  IndexExpr place(ExprPool& pool, ExprCopier& copier, const SubpixelPhases& p, std::vector<std::uint32_t>& phase_axes,
                  std::vector<std::uint32_t>& others) {
    const IndexExpr extent = kernel_.pool.extent(p.output);
    const std::int64_t taps = *kernel_.pool.extent(p.tap).as_constant(), each = (taps + p.period() - 1) / p.period();
    IndexExpr phase = 0, tap = 0;
    if (p.period() > 1) {
      phase_axes.push_back(pool.new_axis(p.period()));
      tap = IndexExpr::axis(phase_axes.back());
      phase = tap * p.dilation;
    }
    if (p.common() > 1) {
      phase_axes.push_back(pool.new_axis(p.common()));
      phase += IndexExpr::axis(phase_axes.back());
    }
    if (each > 1) {
      steps_[p.tap] = pool.new_axis(each);
      tap += IndexExpr::axis(steps_.at(p.tap)) * p.period();
    }
    copier.axis[p.tap] = tap;
    if (taps % p.period() != 0) limits_[p.tap] = {tap, taps};
    // (phase - constant) mod stride
    const IndexExpr first =
        simplify(phase - p.constant - floor_div(phase - p.constant, p.stride) * p.stride, pool.bounds());
    others.push_back(pool.new_axis(simplify(ceil_div(extent, p.stride), pool.bounds())));
    return simplify(IndexExpr::axis(others.back()) * p.stride + first, pool.bounds());
  }

  // Guards loads along taps beyond the last one.
  ExprId guarded(ExprPool& pool, ExprId load, ExprId copied) {
    ExprId there = kNoExpr;
    for (const auto& [axis, limit] : limits_) {
      const Variable v{Variable::Kind::kAxis, axis};
      if (std::ranges::none_of(kernel_.pool[load].indices, [&](const IndexExpr& e) { return mentions(e, v); }))
        continue;
      const ExprId now = pool.less(limit.first, limit.second);
      there = there == kNoExpr ? now : pool.binary(ExprOp::kAnd, there, now);
    }
    if (there == kNoExpr) return copied;
    const ExprNode n = pool[copied];
    const ExprId guard = n.args[0] == kNoExpr ? there : pool.binary(ExprOp::kAnd, there, n.args[0]);
    const ExprId value = pool.load(n.source, n.dtype, n.indices, guard);
    return pool.select(there, value, zero(pool, n.type));
  }

  static ExprId zero(ExprPool& pool, ScalarType type) {
    return is_float(type) ? pool.constant(type, 0.0) : pool.constant(type, std::int64_t{0});
  }

  const Kernel& kernel_;
  const ExprId reduction_;
  const std::vector<SubpixelPhases> phases_;
  std::map<std::uint32_t, std::uint32_t> steps_;  // by tap axis: the new axis that is summed
  // by tap axis: the tap's expression, and the number of taps
  std::map<std::uint32_t, std::pair<IndexExpr, std::int64_t>> limits_;
};

}  // namespace

std::optional<Kernel> with_subpixel_phases(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  ExprId reduction = kNoExpr;
  for (const KernelOutput& output : kernel.outputs)
    if (output.axes != kernel.outputs[0].axes) return std::nullopt;
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    if (pool[id].op != ExprOp::kReduce) continue;
    if (reduction != kNoExpr) return std::nullopt;
    reduction = id;
  }
  if (reduction == kNoExpr) return std::nullopt;
  std::vector<SubpixelPhases> phases = find_subpixel_phases(kernel, reduction);
  if (phases.empty()) return std::nullopt;
  return Splitting(kernel, reduction, std::move(phases)).run();
}

}  // namespace fusec
