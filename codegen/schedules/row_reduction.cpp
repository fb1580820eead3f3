#include "codegen/schedules/row_reduction.h"

#include <algorithm>
#include <optional>

#include "analysis/copy_expr.h"
#include "analysis/kernel_forms.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/row_emitter.h"
#include "codegen/schedules/row_form.h"
#include "codegen/schedules/row_layout.h"
#include "codegen/schedules/row_vectors.h"
#include "codegen/schedules/short_row_emitter.h"
#include "codegen/schedules/short_rows.h"
#include "ir/type.h"

namespace fusec {
namespace {

// Up to this length single threads do better, where no column needs the result and rows do not follow one another.
constexpr int kSmallWindow = 48;

IndexExpr length_of(const ExprPool& pool, ExprId reduction) {
  return point_count(pool, pool[reduction].axes);
}

// The contiguous row axis last, so that neighbouring threads read neighbouring elements.
RowForm with_contiguous_row_last(RowForm form, std::uint32_t axis) {
  if (form.rows.empty() || form.rows.back() == axis) return form;
  std::erase(form.rows, axis);
  form.rows.push_back(axis);
  return form;
}

// Windows so short, or read in such an order, that single threads do better.
bool is_for_single_threads(const RowForm& form, const Direction& direction) {
  if (!form.columns.empty()) return false;
  const ExprPool& pool = form.kernel.pool;
  std::int64_t longest = 0;
  for (const ExprId r : form.reductions)
    longest = std::max(longest, value_at_hint(length_of(pool, r), pool.bounds().symbols));
  if (longest <= kSmallWindow) return !direction.whole_rows;
  return direction.along_rows == 0 && direction.along_reduction == 0 && longest <= 8 * kSmallWindow;
}

std::vector<KernelSource> in_layout(RowForm form, const RowLayout& layout, const Direction& direction,
                                    const Kernel& kernel, const Graph& graph) {
  if (layout.team == RowTeam::kColumn) form = with_contiguous_row_last(std::move(form), direction.contiguous_row);
  RowSplit split;
  RowForm ready = layout.team == RowTeam::kColumn ? form : split_vectors(form, graph, split);
  ready.reductions = row_reductions(ready.kernel);  // the copy has them under new ids
  const IndexExpr threads = point_count(ready.kernel.pool, ready.rows) * layout.parts * layout.chunks;
  const bool wide = needs_wide_index(ready.kernel, graph, threads) || needs_wide_index(kernel, graph, threads);
  std::vector<KernelSource> sources;
  const std::vector<int> stages = stages_of(ready);
  const int last = layout.chunks > 1 ? 1 + *std::ranges::max_element(stages) : 0;
  for (int stage = 0; stage <= last; ++stage)
    sources.push_back(emit_rows({ready, graph, layout, split, wide, stage}, kernel));
  return sources;
}

}  // namespace

std::vector<KernelSource> row_reduction(const Kernel& kernel, const Graph& graph, const Target& target,
                                        Choices& choices) {
  const std::optional<RowForm> form = row_form(kernel, graph);
  if (!form) return {};
  const Direction direction = direction_of(*form, graph);
  if (form->columns.empty() && direction.product) return {};
  std::vector<ShortRows> together;
  if (!direction.product) together = short_rows(*form, graph, target);
  std::vector<RowLayout> layouts;
  if (!is_for_single_threads(*form, direction)) layouts = row_layouts(*form, direction, target);
  if (together.empty() && layouts.empty()) return {};
  constexpr std::size_t kMostTogether = 6;
  if (together.size() > kMostTogether) together.resize(kMostTogether);
  std::vector<std::string> ways;
  for (const ShortRows& way : together) ways.push_back(name_of(way));
  for (const RowLayout& layout : layouts) ways.push_back(name_of(layout));
  const std::size_t taken = choices.take(std::move(ways));
  if (taken >= together.size()) return in_layout(*form, layouts[taken - together.size()], direction, kernel, graph);
  const ShortRows& way = together[taken];
  const IndexExpr threads = point_count(form->kernel.pool, form->rows) * way.lanes();
  const bool wide = needs_wide_index(form->kernel, graph, threads) || needs_wide_index(kernel, graph, threads);
  return {emit_short_rows(*form, graph, way, wide, kernel)};
}

}  // namespace fusec
