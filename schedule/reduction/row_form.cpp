#include "schedule/reduction/row_form.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "analysis/kernel/operation_work.h"
#include "schedule/kernel_forms.h"
#include "schedule/reduction/reduction_memory_order.h"
#include "schedule/reduction/row_division.h"
#include "schedule/reduction/row_folding.h"
#include "schedule/reduction/row_segments.h"

namespace fusec {
namespace {

// Merges the axes of reductions with equal extents.
Kernel share_reduction_axes(const Kernel& kernel) {
  const std::vector<ExprId> reductions = row_reductions(kernel);
  return change_axes(kernel, [&](ExprPool& pool, ExprCopier& copier) {
    AxisChange change = same_axes(kernel, pool);
    std::map<std::vector<IndexExpr>, std::vector<std::uint32_t>> shared;
    for (const ExprId id : reductions) {
      const ExprNode& n = kernel.pool[id];
      std::vector<IndexExpr> extents;
      for (const std::uint32_t a : n.axes) extents.push_back(kernel.pool.extent(a));
      // Extents may not depend on axes, because they are copied before them.
      const bool plain = std::all_of(extents.begin(), extents.end(), [](const IndexExpr& e) {
        for (const Variable v : variables_of(e))
          if (v.kind != Variable::Kind::kSymbol) return false;
        return true;
      });
      if (!plain) continue;
      std::vector<std::uint32_t>& axes = shared[extents];
      if (axes.empty())
        for (const IndexExpr& e : extents) axes.push_back(pool.new_axis(e));
      for (std::size_t i = 0; i < n.axes.size(); ++i)
        if (!copier.axis[n.axes[i]]) copier.axis[n.axes[i]] = IndexExpr::axis(axes[i]);
    }
    return change;
  });
}

// Merges the reduction axes [first, last) of one group of reductions into one axis.
Kernel merge_reduction_axes(const Kernel& kernel, const std::vector<std::uint32_t>& axes, std::size_t first,
                            std::size_t last) {
  return change_axes(kernel, [&](ExprPool& pool, ExprCopier& copier) {
    AxisChange change = same_axes(kernel, pool);
    std::vector<std::uint32_t>& after = copier.reduction_axes[axes];
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (i > first && i < last) continue;
      IndexExpr count = kernel.pool.extent(axes[i]);
      for (std::size_t j = first + 1; i == first && j < last; ++j) count *= kernel.pool.extent(axes[j]);
      after.push_back(pool.new_axis(count));
      copier.axis[axes[i]] = IndexExpr::axis(after.back());
    }
    // From the outermost axis on: quotient and remainder of what is left. Recombined, they simplify to the merged axis.
    IndexExpr rest = IndexExpr::axis(after[first]);
    for (std::size_t i = first; i < last; ++i) {
      IndexExpr inner = 1;
      for (std::size_t j = i + 1; j < last; ++j) inner *= kernel.pool.extent(axes[j]);
      copier.axis[axes[i]] = floor_div(rest, inner);
      rest = floor_mod(rest, inner);
    }
    return change;
  });
}

bool is_positive(const IndexExpr& e, const Bounds& bounds) {
  return range_of(e, bounds).min >= 1;
}

bool has_remainder(const IndexExpr& e) {
  std::vector<IndexExpr> left = {e};
  while (!left.empty()) {
    const IndexExpr here = std::move(left.back());
    left.pop_back();
    for (const IndexTerm& term : here.terms())
      for (const IndexAtomPtr& factor : term.factors) {
        if (factor->kind == IndexAtom::Kind::kMod) return true;
        if (factor->kind == IndexAtom::Kind::kVariable) continue;
        left.push_back(factor->a);
        left.push_back(factor->b);
      }
  }
  return false;
}

// True if merging the axes makes vectors possible. Planes of odd size are contiguous, but the last axis alone has no
// whole vectors. A per-plane operand (a channel's bias) then needs a division, and a vector reads at most two of its
// elements.
bool makes_vectors(const Kernel& kernel, const std::vector<std::uint32_t>& axes, const Kernel& merged,
                   const Graph& graph) {
  constexpr std::int64_t kVector = 8, kSmallest = 4;  // elements
  const Bounds& bounds = kernel.pool.bounds();
  const IndexExpr& plane = kernel.pool.extent(axes.back());
  if (proves_multiple_of(plane, kSmallest, bounds) || range_of(plane, bounds).min < kVector) return false;
  const auto is_along = [&](ExprId load) {
    return coefficient_of(position_of(graph, kernel.pool, load), {Variable::Kind::kAxis, axes.back()}) == 1;
  };
  const std::vector<ExprId> before = reachable(kernel.pool, row_reductions(kernel));
  if (std::ranges::none_of(before, [&](ExprId id) { return kernel.pool[id].op == ExprOp::kLoad && is_along(id); }))
    return false;
  return std::ranges::none_of(reachable(merged.pool, row_reductions(merged)), [&](ExprId id) {
    const ExprNode& n = merged.pool[id];
    return (n.op == ExprOp::kLoad && has_remainder(position_of(graph, merged.pool, id))) ||
           (n.op == ExprOp::kIndex && has_remainder(n.indices[0]));
  });
}

// Merges all of the axes, or else two neighbours. Nothing if that needs more divisions and makes no vectors.
std::optional<Kernel> with_axes_merged(const Kernel& kernel, const std::vector<std::uint32_t>& axes,
                                       const Graph& graph) {
  const auto divisions = count_divisions(kernel, graph);
  const auto is_no_worse = [&](const Kernel& merged) {
    return count_divisions(merged, graph) <= divisions || makes_vectors(kernel, axes, merged, graph);
  };
  if (Kernel merged = merge_reduction_axes(kernel, axes, 0, axes.size()); is_no_worse(merged)) return merged;
  for (std::size_t last = axes.size(); axes.size() > 2 && last >= 2; --last)
    if (Kernel merged = merge_reduction_axes(kernel, axes, last - 2, last); is_no_worse(merged)) return merged;
  return std::nullopt;
}

Kernel merge_all_reductions(Kernel kernel, const Graph& graph) {
  std::set<std::vector<IndexExpr>> tried;
  for (bool again = true; again;) {
    again = false;
    for (const ExprId id : row_reductions(kernel)) {
      const std::vector<std::uint32_t> axes = kernel.pool[id].axes;
      if (axes.size() < 2) continue;
      std::vector<IndexExpr> extents;
      for (const std::uint32_t a : axes) extents.push_back(kernel.pool.extent(a));
      if (!tried.insert(extents).second) continue;
      if (!std::all_of(extents.begin(), extents.end(),
                       [&](const IndexExpr& e) { return is_positive(e, kernel.pool.bounds()); }))
        continue;
      if (std::optional<Kernel> merged = with_axes_merged(kernel, axes, graph)) {
        kernel = *std::move(merged);
        again = true;
        break;
      }
    }
  }
  return kernel;
}

// The constant q if the reductions use the axis only as `axis // q`; else 0.
std::int64_t common_divisor_of(const Kernel& kernel, const std::vector<ExprId>& reductions, std::uint32_t axis) {
  const Variable variable{Variable::Kind::kAxis, axis};
  std::int64_t q = 0;
  bool only_divided = true;
  std::function<void(const IndexExpr&)> visit = [&](const IndexExpr& e) {
    for (const IndexTerm& term : e.terms())
      for (const IndexAtomPtr& factor : term.factors) {
        if (factor->kind == IndexAtom::Kind::kVariable) {
          if (factor->variable == variable) only_divided = false;
          continue;
        }
        const auto by = factor->b.as_constant();
        if (factor->kind == IndexAtom::Kind::kFloorDiv && factor->a == IndexExpr::axis(axis) && by &&
            (q == 0 || q == *by)) {
          q = *by;
          continue;
        }
        visit(factor->a);
        visit(factor->b);
      }
  };
  for (const ExprId id : reachable(kernel.pool, reductions))
    for (const IndexExpr& e : kernel.pool[id].indices) visit(e);
  if (!only_divided || q <= 1 || !proves_multiple_of(kernel.pool.extent(axis), q, kernel.pool.bounds())) return 0;
  return q;
}

Kernel split_axis(const Kernel& kernel, std::uint32_t axis, std::int64_t q) {
  return change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change;
    for (const std::uint32_t a : kernel.outputs[0].axes) {
      const IndexExpr& extent = kernel.pool.extent(a);
      if (a != axis) {
        change.new_axes.push_back(pool.new_axis(extent));
        change.values.push_back(IndexExpr::axis(change.new_axes.back()));
        continue;
      }
      const std::uint32_t outer = pool.new_axis(simplify(floor_div(extent, q), pool.bounds()));
      const std::uint32_t inner = pool.new_axis(q);
      change.new_axes.insert(change.new_axes.end(), {outer, inner});
      change.values.push_back(IndexExpr::axis(outer) * q + IndexExpr::axis(inner));
    }
    return change;
  });
}

bool is_indexed_by(const KernelOutput& output, std::uint32_t axis) {
  return std::ranges::any_of(output.index, [&](const IndexExpr& e) { return mentions_any(e, {axis}); });
}

// True if some output runs along one of the axes but not along the other.
bool parts_an_output(const Kernel& kernel, std::uint32_t a, std::uint32_t b) {
  return std::ranges::any_of(kernel.outputs,
                             [&](const KernelOutput& o) { return is_indexed_by(o, a) != is_indexed_by(o, b); });
}

// True if the merged columns have as many elements as a reduction and read the same operands. The few divided accesses
// (per-channel weights) then do not matter: separate axes would need a division too.
bool are_a_reduction(const Kernel& kernel, std::uint32_t columns, const Graph& graph) {
  const ExprPool& pool = kernel.pool;
  const std::vector<ExprId> reductions = row_reductions(kernel);
  if (std::ranges::none_of(reductions, [&](ExprId r) {
        return pool[r].axes.size() == 1 && pool.extent(pool[r].axes[0]) == pool.extent(columns);
      }))
    return false;
  return std::ranges::none_of(accesses_of(graph, pool, roots_of(kernel), kernel.outputs),
                              [](const Access& access) { return has_remainder(access.at); });
}

// Merges neighbouring columns if accesses allow it.
Kernel merge_columns(Kernel kernel, const Graph& graph, std::size_t row_count) {
  AxisMerger merger(std::move(kernel), graph);
  for (std::size_t i = merger.kernel().outputs[0].axes.size(); i-- > row_count + 1;) {
    const std::vector<std::uint32_t>& axes = merger.kernel().outputs[0].axes;
    if (!parts_an_output(merger.kernel(), axes[i - 1], axes[i]))
      merger.merge(i - 1,
                   [&](const Kernel& merged) { return are_a_reduction(merged, merged.outputs[0].axes[i - 1], graph); });
  }
  return merger.kernel();
}

std::set<std::uint32_t> row_axes(const Kernel& kernel, const std::vector<ExprId>& reductions) {
  const auto depends = dependences(kernel.pool);
  std::set<std::uint32_t> rows;
  for (const ExprId id : reductions) rows.insert(depends[id].begin(), depends[id].end());
  return rows;
}

}  // namespace

std::vector<std::uint32_t> columns_without(const RowForm& form, const KernelOutput& output) {
  std::vector<std::uint32_t> without;
  for (const std::uint32_t a : form.columns)
    if (!form.kernel.pool.extent(a).is(1) && !is_indexed_by(output, a)) without.push_back(a);
  return without;
}

int code_of_element(const RowForm& form, const std::vector<ExprId>& roots, const std::function<bool(ExprId)>& known) {
  const auto depends = dependences(form.kernel.pool);
  const auto is_of_row = [&](std::uint32_t axis) { return std::ranges::find(form.rows, axis) != form.rows.end(); };
  int code = 0;
  for (const ExprId id : outside_reductions(form, roots, known))
    if (!std::ranges::all_of(depends[id], is_of_row) && !(known && known(id)))
      code += instruction_count(form.kernel.pool[id]);
  return code;
}

std::optional<RowAxes> axes_of_one_length(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  std::set<std::uint32_t> axes(form.columns.begin(), form.columns.end());
  for (const ExprId r : form.reductions) {
    if (pool[r].axes.size() != 1) return std::nullopt;
    axes.insert(pool[r].axes[0]);
  }
  const auto length = pool.extent(*axes.begin()).as_constant();
  if (form.columns.size() > 1 || !length) return std::nullopt;
  if (std::ranges::any_of(axes, [&](std::uint32_t a) { return !pool.extent(a).is(*length); })) return std::nullopt;
  return RowAxes{.axes = {axes.begin(), axes.end()}, .length = *length};
}

int unroll_factor(int code_of_iteration, int code_of_all) {
  int iterations = 4;
  while (iterations > 1 && (iterations * code_of_iteration > kMaxUnrolledInstructions / 4 ||
                            iterations * code_of_all > kMaxUnrolledInstructions))
    iterations /= 2;
  return iterations;
}

bool is_of_rows(const RowForm& form, const KernelOutput& output) {
  const auto with_extent =
      std::ranges::count_if(form.columns, [&](std::uint32_t a) { return !form.kernel.pool.extent(a).is(1); });
  return static_cast<std::ptrdiff_t>(columns_without(form, output).size()) == with_extent;
}

RowOutputs outputs_of(const RowForm& form, bool row) {
  RowOutputs outputs;
  for (const KernelOutput& output : form.kernel.outputs)
    if (is_of_rows(form, output) == row) outputs.push_back(&output);
  return outputs;
}

std::vector<ExprId> roots_of(const RowOutputs& outputs) {
  std::vector<ExprId> roots;
  for (const KernelOutput* output : outputs) roots.push_back(output->expr);
  return roots;
}

std::optional<RowForm> row_form(const Kernel& original, const Graph& graph) {
  Kernel kernel = drop_unit_axes(original);
  if (row_reductions(kernel).empty()) return std::nullopt;
  kernel = with_reductions_in_memory_order(divide_once_a_row(share_reduction_axes(kernel)), graph);
  for (std::size_t i = 0; i < kernel.outputs[0].axes.size(); ++i) {
    const std::uint32_t axis = kernel.outputs[0].axes[i];
    const std::vector<ExprId> reductions = row_reductions(kernel);
    if (!row_axes(kernel, reductions).contains(axis)) continue;
    if (const std::int64_t q = common_divisor_of(kernel, reductions, axis); q != 0)
      kernel = split_axis(kernel, axis, q);
  }
  kernel = merge_all_reductions(std::move(kernel), graph);
  if (std::optional<RowForm> segmented = segmented_rows(kernel, graph)) return segmented;
  // Rows before columns.
  const std::set<std::uint32_t> rows = row_axes(kernel, row_reductions(kernel));
  const std::size_t row_count = rows.size();
  kernel = change_axes(kernel, [&](ExprPool& pool) {
    AxisChange change = same_axes(kernel, pool);
    std::vector<std::uint32_t> first, then;
    for (std::size_t i = 0; i < change.new_axes.size(); ++i)
      (rows.contains(kernel.outputs[0].axes[i]) ? first : then).push_back(change.new_axes[i]);
    first.insert(first.end(), then.begin(), then.end());
    change.new_axes = std::move(first);
    return change;
  });
  RowForm form;
  form.kernel = merge_columns(std::move(kernel), graph, row_count);
  const std::vector<std::uint32_t>& axes = form.kernel.outputs[0].axes;
  form.rows.assign(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(row_count));
  form.columns.assign(axes.begin() + static_cast<std::ptrdiff_t>(row_count), axes.end());
  form.reductions = row_reductions(form.kernel);
  return with_rows_folded(std::move(form), graph);
}

RowForm with_rows_merged(const RowForm& form, const Graph& graph) {
  AxisMerger merger(form.kernel, graph);
  RowForm merged = form;
  std::size_t rows = form.rows.size();
  for (std::size_t i = form.rows.size(); i-- > 1;) rows -= merger.merge(i - 1);
  if (rows == form.rows.size()) return merged;
  merged.kernel = merger.kernel();
  const std::vector<std::uint32_t>& axes = merged.kernel.outputs[0].axes;
  merged.rows.assign(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(rows));
  merged.columns.assign(axes.begin() + static_cast<std::ptrdiff_t>(rows), axes.end());
  merged.reductions = row_reductions(merged.kernel);
  return merged;
}

std::vector<ExprId> outside_reductions(const RowForm& form, const std::vector<ExprId>& roots,
                                       const std::function<bool(ExprId)>& known) {
  std::vector<std::uint8_t> reduced(form.kernel.pool.size(), 0);
  for (const ExprId r : form.reductions) reduced[r] = 1;
  return reachable(form.kernel.pool, roots, [&](ExprId id) { return reduced[id] != 0 || (known && known(id)); });
}

bool is_wide(ScalarType type) {
  return type == ScalarType::kFloat64 || type == ScalarType::kInt64 || type == ScalarType::kUInt64;
}

int bytes_of_partial(const RowForm& form, ExprId reduction) {
  const ExprNode& n = form.kernel.pool[reduction];
  const int position = n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin ? 8 : 0;
  return position + (is_wide(form.kernel.pool[n.args[0]].type) ? 8 : 4);
}

int bytes_of_partials(const RowForm& form, int times_each) {
  std::map<std::pair<Reduction, ScalarType>, int> times;
  int bytes = 0;
  for (const ExprId r : form.reductions) {
    const ExprNode& n = form.kernel.pool[r];
    if (++times[{n.reduction, form.kernel.pool[n.args[0]].type}] <= times_each) bytes += bytes_of_partial(form, r);
  }
  return bytes;
}

namespace {

// For each of form.reductions: the length of the longest chain of reductions that it depends on.
std::vector<int> stages_of(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  std::vector<std::uint8_t> reduced(pool.size(), 0);
  for (const ExprId r : form.reductions) reduced[r] = 1;
  std::vector<int> reduction_depth(pool.size(),
                                   0);                        // by node: reductions that must be finished before it
  for (const ExprId id : reachable(pool, form.reductions)) {  // operands first
    const ExprNode& n = pool[id];
    for (const ExprId a : n.args)
      if (a != kNoExpr) reduction_depth[id] = std::max(reduction_depth[id], reduction_depth[a]);
    for (const ExprId v : values_in(n)) reduction_depth[id] = std::max(reduction_depth[id], reduction_depth[v]);
    reduction_depth[id] += reduced[id];
  }
  std::vector<int> stages;
  for (const ExprId r : form.reductions) stages.push_back(reduction_depth[r] - 1);
  return stages;
}

}  // namespace

int stage_count(const RowForm& form) {
  const std::vector<int> stages = stages_of(form);
  return 1 + *std::ranges::max_element(stages);
}

std::vector<ExprId> ReductionLoop::bodies(const ExprPool& pool) const {
  std::vector<ExprId> result;
  for (const ExprId r : reductions) result.push_back(pool[r].args[0]);
  return result;
}

std::vector<ReductionLoop> reduction_loops(const RowForm& form) {
  const std::vector<int> stages = stages_of(form);
  std::map<std::pair<int, std::vector<std::uint32_t>>, std::vector<ExprId>> together;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const ExprId reduction = form.reductions[i];
    together[{stages[i], form.kernel.pool[reduction].axes}].push_back(reduction);
  }
  std::vector<ReductionLoop> loops;
  for (auto& [key, reductions] : together)
    loops.push_back({.stage = key.first, .axes = key.second, .reductions = std::move(reductions)});
  return loops;
}

std::vector<RowLoop> loops_over_row(const RowForm& form) {
  std::vector<RowLoop> loops;
  for (const ReductionLoop& loop : reduction_loops(form))
    loops.push_back({.axes = loop.axes, .roots = loop.bodies(form.kernel.pool)});
  if (const RowOutputs of_columns = outputs_of(form, false); !of_columns.empty())
    loops.push_back({.axes = form.columns, .roots = roots_of(of_columns)});
  return loops;
}

}  // namespace fusec
