#include "analysis/kernel/copy_expr.h"

#include <algorithm>

#include "ir/error.h"

namespace fusec {

ExprCopier::ExprCopier(const ExprPool& from, ExprPool& to)
    : axis(from.bounds().axes.size()),
      from_(from),
      to_(to),
      done_(from.size(), kNoExpr),
      index_copier_([this](Variable v) { return copy_variable(v); }, combine) {}

const IndexExpr& ExprCopier::value_of(std::uint32_t old) {
  if (axis.size() <= old) axis.resize(old + 1);
  if (!axis[old]) {
    IndexExpr extent = to_.simplified(copy(from_.extent(old)));
    axis[old] = drops_units && extent.is(1) ? IndexExpr(0) : IndexExpr::axis(to_.new_axis(std::move(extent)));
  }
  return *axis[old];
}

std::uint32_t ExprCopier::copy_axis(std::uint32_t old) {
  const auto variable = value_of(old).as_variable();
  if (!variable || variable->kind != Variable::Kind::kAxis) throw InternalError("a reduction over no plain axis");
  return variable->id;
}

std::optional<IndexExpr> ExprCopier::copy_variable(Variable v) {
  switch (v.kind) {
    case Variable::Kind::kSymbol:
      break;
    case Variable::Kind::kAxis:
      return value_of(v.id);
    case Variable::Kind::kValue:
      return to_.known_index(done_.at(v.id), copy(from_.bounds().value_max.at(v.id)));
  }
  return std::nullopt;
}

IndexExpr ExprCopier::copy(const IndexExpr& e) {
  return index_copier_(e);
}

// The expressions that must be copied before this one, into `operands_`.
void ExprCopier::find_operands(ExprId id) {
  const ExprNode& n = from_[id];
  operands_.clear();
  if (n.op == ExprOp::kLoad && replacement) {
    const ExprId instead = replacement(id);
    if (instead != kNoExpr) return operands_.push_back(instead);
  }
  auto values = [&](const IndexExpr& e) {
    for (const Variable v : variables_of(e))
      if (v.kind == Variable::Kind::kValue) operands_.push_back(v.id);
  };
  if (from_.has_values())
    for (const IndexExpr& e : n.indices) values(e);
  for (const ExprId a : n.args)
    if (a != kNoExpr) operands_.push_back(a);
}

ExprId ExprCopier::copy_node(ExprId id) {
  const ExprNode& n = from_[id];
  auto arg = [&](std::size_t i) { return n.args[i] == kNoExpr ? kNoExpr : done_[n.args[i]]; };
  if (rewritten)
    if (const ExprId now = rewritten(id, [&](ExprId of) { return done_.at(of); }); now != kNoExpr) return now;
  switch (n.op) {
    case ExprOp::kConstant:
      return to_.add(n);
    case ExprOp::kLoad: {
      if (replacement) {
        const ExprId instead = replacement(id);
        if (instead != kNoExpr) return finish ? finish(id, done_[instead]) : done_[instead];
      }
      std::vector<IndexExpr> indices;
      for (const IndexExpr& e : n.indices) indices.push_back(copy(e));
      const ExprId copied = to_.load(n.source, n.dtype, std::move(indices), arg(0));
      return finish_load ? finish_load(id, copied) : copied;
    }
    case ExprOp::kIndex:
      return to_.index(copy(n.indices[0]));
    case ExprOp::kConvert:
      return to_.convert(arg(0), n.type);
    case ExprOp::kRound:
      return to_.round(arg(0), n.dtype);
    case ExprOp::kSelect:
      return to_.select(arg(0), arg(1), arg(2));
    case ExprOp::kReduce: {
      std::vector<std::uint32_t> axes;
      if (const auto it = reduction_axes.find(n.axes); it != reduction_axes.end())
        axes = it->second;
      else
        for (const std::uint32_t a : n.axes)
          if (!drops_units || !value_of(a).is(0)) axes.push_back(copy_axis(a));
      return to_.reduce(n.reduction, std::move(axes), arg(0));
    }
    case ExprOp::kBitcast:
    case ExprOp::kFma: {
      ExprNode copy = n;
      for (std::size_t i = 0; i < copy.args.size(); ++i) copy.args[i] = arg(i);
      return to_.add(std::move(copy));
    }
    case ExprOp::kGe:
    case ExprOp::kLt: {
      // Builds guards anew: bounds may decide a comparison of the new axes that they did not decide before.
      const ExprNode& a = to_[arg(0)];
      const ExprNode& b = to_[arg(1)];
      auto whole = [](const ExprNode& e) -> std::optional<IndexExpr> {
        if (e.op == ExprOp::kIndex) return e.indices[0];
        if (e.op == ExprOp::kConstant && e.type == ScalarType::kInt64) return IndexExpr(e.integer);
        return std::nullopt;
      };
      const auto x = whole(a), y = whole(b);
      if (x && y) return n.op == ExprOp::kLt ? to_.less(*x, *y) : to_.nonnegative(*x - *y);
      return to_.binary(n.op, arg(0), arg(1));
    }
    default:
      return arity(n.op) == 1 ? to_.unary(n.op, arg(0)) : to_.binary(n.op, arg(0), arg(1));
  }
}

ExprId ExprCopier::copy(ExprId root) {
  if (done_.size() < from_.size()) done_.resize(from_.size(), kNoExpr);
  std::vector<std::pair<ExprId, bool>> stack{{root, false}};  // true: its operands are copied
  while (!stack.empty()) {
    const auto [id, ready] = stack.back();
    stack.pop_back();
    if (done_[id] != kNoExpr) continue;
    if (ready) {
      done_[id] = copy_node(id);
      continue;
    }
    stack.push_back({id, true});
    find_operands(id);
    for (auto it = operands_.rbegin(); it != operands_.rend(); ++it)
      if (done_[*it] == kNoExpr) stack.push_back({*it, false});
  }
  return done_[root];
}

AxisChange same_axes(const Kernel& kernel, ExprPool& pool) {
  AxisChange change;
  for (const std::uint32_t a : kernel.outputs.at(0).axes) {
    change.new_axes.push_back(pool.new_axis(kernel.pool.extent(a)));
    change.values.push_back(IndexExpr::axis(change.new_axes.back()));
  }
  return change;
}

Kernel change_axes(const Kernel& kernel, const std::function<AxisChange(ExprPool&)>& make_axes) {
  return change_axes(kernel, [&](ExprPool& pool, ExprCopier&) { return make_axes(pool); });
}

Kernel change_axes(const Kernel& kernel, const std::function<AxisChange(ExprPool&, ExprCopier&)>& make_axes,
                   std::span<ExprId> follow) {
  Kernel changed;
  changed.pool = ExprPool(kernel.pool.bounds());
  changed.nodes = kernel.nodes;
  changed.exact_steps = kernel.exact_steps;
  changed.numerics = kernel.numerics;
  ExprCopier copier(kernel.pool, changed.pool);
  const AxisChange change = make_axes(changed.pool, copier);
  const std::vector<std::uint32_t>& old_axes = kernel.outputs.at(0).axes;
  for (std::size_t i = 0; i < old_axes.size(); ++i) copier.axis[old_axes[i]] = change.values[i];
  for (const KernelOutput& output : kernel.outputs) {
    KernelOutput now = output;
    now.expr = copier.copy(output.expr);
    now.axes = change.new_axes;
    for (const std::uint32_t a : output.axes)
      if (std::find(old_axes.begin(), old_axes.end(), a) == old_axes.end()) now.axes.push_back(copier.copy_axis(a));
    now.index.clear();
    for (const IndexExpr& e : output.index) now.index.push_back(changed.pool.simplified(copier.copy(e)));
    changed.outputs.push_back(std::move(now));
  }
  for (const NamedExpr& named : kernel.named) changed.named.push_back({copier.copy(named.expr), named.value});
  for (ExprId& id : follow) id = copier.copy(id);
  changed.pool.forget_simplifications();
  return changed;
}

}  // namespace fusec
