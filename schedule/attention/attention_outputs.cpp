#include "schedule/attention/attention_outputs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/type.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

bool shares_any(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  return std::ranges::any_of(a, [&](std::uint32_t axis) { return contains(b, axis); });
}

IndexExpr rows_count(const Attention& form) {
  return point_count(form.kernel.pool, form.batch) * point_count(form.kernel.pool, form.rows);
}

// Returns the axes whose digits form the index, lowest first: a, or head * group + member. Each value of the index then
// occurs once.
std::optional<Axes> digits_of(const IndexExpr& index, const ExprPool& pool) {
  if (index.constant_term() != 0) return std::nullopt;
  const std::vector<Variable> variables = variables_of(index);
  Axes axes;
  for (std::size_t digit = 0; digit < index.terms().size(); ++digit) {
    const IndexExpr weight = point_count(pool, axes);
    const auto next = std::ranges::find_if(variables, [&](const Variable& v) {
      const auto one = [&](Variable w) { return w == v ? std::optional<IndexExpr>(1) : std::nullopt; };
      const auto none = [&](Variable w) { return w == v ? std::optional<IndexExpr>(0) : std::nullopt; };
      return v.kind == Variable::Kind::kAxis && !contains(axes, v.id) &&
             substitute(index, one) - substitute(index, none) == weight;
    });
    if (next == variables.end()) return std::nullopt;
    axes.push_back(next->id);
  }
  IndexExpr made = 0, weight = 1;
  for (const std::uint32_t a : axes) {
    made += IndexExpr::axis(a) * weight;
    weight *= pool.extent(a);
  }
  if (made != index) return std::nullopt;
  return axes;
}

// Returns whether the output's index covers each of its elements once.
bool covers_all(const KernelOutput& output, const Attention& form) {
  Axes seen;
  for (std::size_t d = 0; d < output.index.size(); ++d) {
    if (output.type.shape[d].is(1)) continue;
    const auto digits = digits_of(output.index[d], form.kernel.pool);
    if (!digits || point_count(form.kernel.pool, *digits) != output.type.shape[d]) return false;
    for (const std::uint32_t a : *digits) {
      if (contains(seen, a) || contains(form.columns, a)) return false;
      seen.push_back(a);
    }
  }
  return true;
}

// Returns whether `root` reaches a product other than through a score or a reduction of a row.
bool reaches_product(ExprId root, const Attention& form) {
  std::vector<ExprId> stack{root};
  std::vector<std::uint8_t> seen(form.kernel.pool.size(), 0);
  while (!stack.empty()) {
    const ExprId id = stack.back();
    stack.pop_back();
    if (id == form.masked_score || id == form.exponential || std::exchange(seen[id], 1)) continue;
    const ExprNode& n = form.kernel.pool[id];
    if (n.op == ExprOp::kReduce && n.axes == form.keys && id != form.result) continue;
    if (n.op == ExprOp::kReduce) return true;
    for (const ExprId a : n.args)
      if (a != kNoExpr) stack.push_back(a);
  }
  return false;
}

// Returns whether the output has one element per row although its axes are the result's.
bool is_of_rows(const KernelOutput& output, std::span<const std::uint32_t> needs, const Attention& form) {
  Axes numbering;
  for (const IndexExpr& index : output.index)
    for (const Variable v : variables_of(index))
      if (v.kind == Variable::Kind::kAxis) numbering.push_back(v.id);
  return !form.columns.empty() && !shares_any(numbering, form.columns) && !shares_any(needs, form.columns) &&
         !shares_any(needs, form.keys) && element_count(output.type.shape) == rows_count(form);
}

}  // namespace

std::string_view classify_outputs(Attention& form) {
  constexpr std::string_view kNoWeights = "an output beside the result is not made of its weights";
  const Axes& of_result = form.kernel.outputs[0].axes;
  const auto depends = dependences(form.kernel.pool);
  for (std::size_t i = 0; i < form.kernel.outputs.size(); ++i) {
    const KernelOutput& output = form.kernel.outputs[i];
    const std::span<const std::uint32_t> needs = depends[output.expr];
    if (output.axes == of_result) {
      if (is_of_rows(output, needs, form)) form.row_outputs.push_back(i);
      continue;
    }
    const bool row_outputs = !shares_any(output.axes, form.keys);
    if (row_outputs && (shares_any(needs, form.keys) || element_count(output.type.shape) != rows_count(form)))
      return kNoWeights;
    (row_outputs ? form.row_outputs : form.extra_outputs).push_back(i);
    const bool of_form = std::ranges::all_of(
        output.axes, [&](std::uint32_t a) { return contains(of_result, a) || contains(form.keys, a); });
    if (!of_form || !covers_all(output, form) || shares_any(needs, form.columns) || reaches_product(output.expr, form))
      return kNoWeights;
  }
  return "";
}

void find_score_buffer(Attention& form) {
  const ExprPool& pool = form.kernel.pool;
  const DType wide = pool[form.contraction].type == ScalarType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  for (const std::size_t i : form.extra_outputs) {
    const KernelOutput& output = form.kernel.outputs[i];
    const IndexExpr scores = rows_count(form) * point_count(pool, form.keys);
    if (output.type.dtype != wide || element_count(output.type.shape) != scores) continue;
    form.score_buffer = i;
    return;
  }
}

}  // namespace fusec
