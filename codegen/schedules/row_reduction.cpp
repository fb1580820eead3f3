#include "codegen/schedules/row_reduction.h"

#include <algorithm>
#include <optional>

#include "analysis/copy_expr.h"
#include "analysis/kernel_forms.h"
#include "analysis/outputs_beside.h"
#include "analysis/row_ways.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/interleaved_emitter.h"
#include "codegen/schedules/row_cohort.h"
#include "codegen/schedules/row_emitter.h"
#include "codegen/schedules/row_vectors.h"
#include "codegen/schedules/short_row_emitter.h"
#include "codegen/schedules/turned_row_emitter.h"
#include "ir/type.h"

namespace fusec {
namespace {

// The contiguous row axis last, so that neighbouring threads read neighbouring elements.
RowForm with_contiguous_row_last(RowForm form, std::uint32_t axis) {
  if (form.rows.empty() || form.rows.back() == axis) return form;
  std::erase(form.rows, axis);
  form.rows.push_back(axis);
  return form;
}

std::vector<KernelSource> in_layout(RowForm form, const RowLayout& layout, const Direction& direction,
                                    const Kernel& kernel, const Graph& graph, const Target& target) {
  if (layout.team == RowTeam::kColumn) form = with_contiguous_row_last(std::move(form), direction.contiguous_row);
  RowSplit split;
  RowForm ready = layout.team == RowTeam::kColumn ? form : split_vectors(form, graph, split);
  if (!ready.segments.empty() && (split.column_width == 1 || ready.segment / split.column_width > 32)) return {};
  ready.reductions = row_reductions(ready.kernel);  // the copy has them under new ids
  std::erase_if(ready.reductions,
                [&](ExprId r) { return std::ranges::find(ready.segments, r) != ready.segments.end(); });
  ready = read_once_beside(ready);
  const IndexExpr threads = point_count(ready.kernel.pool, ready.rows) * layout.parts * layout.chunks;
  const bool wide = needs_wide_index(ready.kernel, graph, threads) || needs_wide_index(kernel, graph, threads);
  std::vector<KernelSource> sources;
  if (layout.cohort > 1) sources.push_back(clear_counters(ready, graph, wide));
  const int kernels = layout.chunks > 1 ? launches_of(ready, layout) : 1;
  for (int stage = 0; stage < kernels; ++stage)
    sources.push_back(emit_rows({ready, graph, layout, split, wide, stage, target.shared_bytes_per_block}, kernel));
  return sources;
}

std::vector<KernelSource> interleaved(const InterleavedRows& way, const Kernel& kernel, const Graph& graph) {
  const RowForm& form = way.form;
  // Threads are numbered in their teams; blocks, and what these leave of their rows, from first to last.
  const IndexExpr partials = point_count(form.kernel.pool, way.outer) * way.strips() *
                             (std::int64_t{way.chunks} * std::max(way.rows, way.teams));
  const bool wide = needs_wide_index(form.kernel, graph, partials) || needs_wide_index(kernel, graph, partials);
  std::vector<KernelSource> sources;
  if (way.cohort) sources.push_back(clear_counters(form, graph, wide));
  for (int stage = 0; stage < (way.cohort ? 1 : launches_of(way)); ++stage)
    sources.push_back(emit_interleaved_rows(graph, way, wide, stage, kernel));
  return sources;
}

KernelSource turned(const TurnedRows& way, const Kernel& kernel, const Graph& graph) {
  const ExprPool& pool = way.form.kernel.pool;
  const IndexExpr threads = point_count(pool, way.outer) * way.strips() * way.threads;
  const bool wide = needs_wide_index(way.form.kernel, graph, threads) || needs_wide_index(kernel, graph, threads);
  return emit_turned_rows(graph, way, wide, kernel);
}

}  // namespace

std::vector<KernelSource> row_reduction(const Kernel& kernel, const Graph& graph, const Target& target,
                                        Choices& choices) {
  const std::optional<RowWays> ways = row_ways(kernel, graph, target);
  if (!ways) return {};
  std::vector<std::string> names;
  for (const TurnedRows& way : ways->turned) names.push_back(name_of(way));
  for (const ShortRows& way : ways->together) names.push_back(name_of(way));
  if (ways->interleaved) names.push_back(name_of(*ways->interleaved));
  for (const RowLayout& layout : ways->layouts) names.push_back(name_of(layout));
  std::size_t taken = choices.take(std::move(names));
  if (taken < ways->turned.size()) return {turned(ways->turned[taken], kernel, graph)};
  taken -= ways->turned.size();
  const std::size_t together = ways->together.size() + (ways->interleaved ? 1 : 0);
  const RowForm& form = ways->form;
  if (taken >= together)
    return in_layout(form, ways->layouts[taken - together], ways->direction, kernel, graph, target);
  if (taken >= ways->together.size()) return interleaved(*ways->interleaved, kernel, graph);
  const ShortRows& way = ways->together[taken];
  const IndexExpr threads = point_count(form.kernel.pool, form.rows) * way.lanes;
  const bool wide = needs_wide_index(form.kernel, graph, threads) || needs_wide_index(kernel, graph, threads);
  return {emit_short_rows(form, graph, way, wide, kernel)};
}

}  // namespace fusec
