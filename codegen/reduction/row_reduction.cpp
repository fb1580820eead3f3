#include "codegen/reduction/row_reduction.h"

#include <algorithm>

#include "analysis/kernel/copy_expr.h"
#include "codegen/access/direct.h"
#include "codegen/reduction/multi_row_block_emitter.h"
#include "codegen/reduction/resident_blocks.h"
#include "codegen/reduction/row_emitter.h"
#include "codegen/reduction/row_vectors.h"
#include "codegen/reduction/strided_reduction_emitter.h"
#include "codegen/reduction/transposed_row_reduction_emitter.h"
#include "ir/type.h"
#include "schedule/reduction/extra_outputs.h"

namespace fusec {
namespace {

// Makes the contiguous axis of rows the last, so that neighbouring threads read neighbouring elements.
RowForm with_contiguous_row_last(RowForm form, std::uint32_t axis) {
  if (form.rows.empty() || form.rows.back() == axis) return form;
  std::erase(form.rows, axis);
  form.rows.push_back(axis);
  return form;
}

// `count`: threads, or elements of scratch memory.
bool needs_wide_index(const RowForm& form, const Kernel& kernel, const Graph& graph, const IndexExpr& count) {
  return needs_wide_index(form.kernel, graph, count) || needs_wide_index(kernel, graph, count);
}

std::vector<KernelSource> in_layout(RowForm form, const RowLayout& layout, const Direction& direction,
                                    const Kernel& kernel, const Graph& graph, const Target& target) {
  if (layout.reduction_group == ReductionGroup::kColumn)
    form = with_contiguous_row_last(std::move(form), direction.contiguous_row);
  RowSplit split;
  RowForm ready = layout.reduction_group == ReductionGroup::kColumn ? form : split_vectors(form, graph, split);
  if (!ready.segments.empty() && (split.column_width == 1 || ready.segment / split.column_width > 32)) return {};
  ready.reductions = row_reductions(ready.kernel);  // they have new ids in the copy
  std::erase_if(ready.reductions,
                [&](ExprId r) { return std::ranges::find(ready.segments, r) != ready.segments.end(); });
  ready = extra_outputs_if_read_once(ready);
  const IndexExpr threads = point_count(ready.kernel.pool, ready.rows) * layout.parts * layout.chunks;
  const bool wide = needs_wide_index(ready, kernel, graph, threads);
  std::vector<KernelSource> sources;
  if (layout.resident_blocks > 1) sources.push_back(clear_counters(ready, graph, wide));
  const int kernels = layout.chunks > 1 ? launches_of(ready, layout) : 1;
  for (int stage = 0; stage < kernels; ++stage)
    sources.push_back(emit_rows({ready, graph, layout, split, wide, stage, target.shared_bytes_per_block}, kernel));
  return sources;
}

std::vector<KernelSource> strided(const StridedReduction& plan, const Kernel& kernel, const Graph& graph) {
  const RowForm& form = plan.form;
  // Thread indices are within a group; block indices, and those of partial results, run over the whole grid.
  const IndexExpr partials = point_count(form.kernel.pool, plan.outer) * plan.strips() *
                             (std::int64_t{plan.chunks} * std::max(plan.rows, plan.groups_per_block));
  const bool wide = needs_wide_index(form, kernel, graph, partials);
  std::vector<KernelSource> sources;
  if (plan.resident_blocks) sources.push_back(clear_counters(form, graph, wide));
  for (int stage = 0; stage < (plan.resident_blocks ? 1 : launches_of(plan)); ++stage)
    sources.push_back(emit_strided_reduction(graph, plan, wide, stage, kernel));
  return sources;
}

KernelSource transposed(const TransposedRowReduction& plan, const Kernel& kernel, const Graph& graph) {
  const ExprPool& pool = plan.form.kernel.pool;
  const IndexExpr threads = point_count(pool, plan.outer) * plan.strips() * plan.threads;
  return emit_transposed_row_reduction(graph, plan, needs_wide_index(plan.form, kernel, graph, threads), kernel);
}

}  // namespace

std::vector<KernelSource> row_reduction(const RowCandidates& candidates, std::size_t taken, const Kernel& kernel,
                                        const Graph& graph, const Target& target) {
  const RowForm& form = candidates.form;
  const RowCandidate& candidate = candidates.plans[taken];
  if (const auto* plan = std::get_if<TransposedRowReduction>(&candidate)) return {transposed(*plan, kernel, graph)};
  if (const auto* plan = std::get_if<StridedReduction>(&candidate)) return strided(*plan, kernel, graph);
  if (const auto* layout = std::get_if<RowLayout>(&candidate))
    return in_layout(form, *layout, candidates.direction, kernel, graph, target);
  const auto& plan = std::get<MultiRowBlock>(candidate);
  const IndexExpr threads = point_count(form.kernel.pool, form.rows) * plan.lanes;
  return {emit_multi_row_block(form, graph, plan, needs_wide_index(form, kernel, graph, threads), kernel)};
}

}  // namespace fusec
