#include "codegen/schedules/row_reduction.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/copy_expr.h"
#include "analysis/kernel_forms.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/row_emitter.h"
#include "codegen/schedules/row_form.h"
#include "codegen/schedules/row_vectors.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kSmallWindow = 48;  // up to this length single threads do better, where no column needs the result
constexpr std::int64_t kLongReduction = 1 << 17;  // from this length on, a reduction to one value takes many blocks

IndexExpr length_of(const ExprPool& pool, ExprId reduction) {
  return point_count(pool, pool[reduction].axes);
}

// What the loads of the reductions' bodies say: does memory run along the reduced axis, or along the rows?
struct Direction {
  int along_reduction = 0, along_rows = 0;
  std::uint32_t contiguous_row = 0;  // where along_rows > 0: the row axis
  bool product = false;              // of loads that each lack a row axis of the other: a matrix product
};

Direction direction_of(const RowForm& form, const Graph& graph) {
  Direction direction;
  const ExprPool& pool = form.kernel.pool;
  const auto depends = dependences(pool);
  for (const ExprId r : form.reductions) {
    std::vector<std::vector<std::uint32_t>> lacking;
    for (const ExprId id : reachable(pool, std::vector<ExprId>{pool[r].args[0]})) {
      const ExprNode& n = pool[id];
      if (n.op != ExprOp::kLoad) continue;
      const IndexExpr at = simplify(flat_index(graph.tensor(n.source).shape, n.indices), pool.bounds());
      bool reduced = false, along_reduction = false, some_row = form.rows.empty();
      std::vector<std::uint32_t> lacks;
      for (const std::uint32_t a : pool[r].axes) {
        reduced = reduced || std::binary_search(depends[id].begin(), depends[id].end(), a);
        along_reduction = along_reduction || coefficient_of(at, {Variable::Kind::kAxis, a}) == 1;
      }
      for (const std::uint32_t a : form.rows) {
        const bool here = std::binary_search(depends[id].begin(), depends[id].end(), a);
        some_row = some_row || here;
        if (!here) lacks.push_back(a);
        if (reduced && coefficient_of(at, {Variable::Kind::kAxis, a}) == 1) {
          ++direction.along_rows;
          direction.contiguous_row = a;
        }
      }
      // A vector that all rows share says nothing beside a matrix.
      if (along_reduction && some_row) ++direction.along_reduction;
      if (reduced && some_row) lacking.push_back(std::move(lacks));
    }
    for (const auto& a : lacking)
      for (const auto& b : lacking) direction.product = direction.product || (!a.empty() && !b.empty() && a != b);
  }
  return direction;
}

int power_of_two_at_least(std::int64_t n, int low, int high) {
  int p = low;
  while (p < high && p < n) p *= 2;
  return p;
}

RowLayout choose_layout(const RowForm& form, const Direction& direction, const Target& target) {
  const ExprPool& pool = form.kernel.pool;
  const std::vector<Symbol>& symbols = pool.bounds().symbols;
  std::int64_t longest = form.columns.empty() ? 1 : value_at_hint(point_count(pool, form.columns), symbols);
  for (const ExprId r : form.reductions) longest = std::max(longest, value_at_hint(length_of(pool, r), symbols));
  const std::int64_t rows = value_at_hint(point_count(pool, form.rows), symbols);
  if (direction.along_rows > direction.along_reduction && !form.rows.empty()) {
    // More threads a row where there are few rows.
    const bool few = rows / kColumnRows < 2 * target.multiprocessors;
    const int parts = power_of_two_at_least(longest / 8, 1, few ? 32 : 8);
    return {RowTeam::kColumn, kColumnRows * parts, kColumnRows, parts};
  }
  if (longest <= 1024 && !form.rows.empty()) {
    // Fewer rows to a block where there would not be a block for every multiprocessor.
    int together = 8;
    while (together > 1 && rows / together < target.multiprocessors) together /= 2;
    return {RowTeam::kWarp, 32 * together, together, 32};
  }
  // Many elements to a thread make the reduction over threads cheap; twice as many for the longest that registers hold.
  const int threads = longest <= 32 * 256 ? power_of_two_at_least(longest / 32, 64, 256)
                                          : power_of_two_at_least(longest / 64, 256, 1024);
  return {RowTeam::kBlock, threads, 1, threads};
}

// Reductions of everything to one value, none of which needs another's result, long enough for many blocks: how many.
int blocks_for_partials(const RowForm& form, const Target& target) {
  const ExprPool& pool = form.kernel.pool;
  if (!form.rows.empty() || !form.columns.empty()) return 1;
  std::int64_t longest = 0;
  for (const ExprId r : form.reductions) {
    longest = std::max(longest, value_at_hint(length_of(pool, r), pool.bounds().symbols));
    for (const ExprId inner : reachable(pool, std::vector<ExprId>{pool[r].args[0]}))
      if (pool[inner].op == ExprOp::kReduce) return 1;
  }
  if (longest < kLongReduction) return 1;
  return static_cast<int>(std::min<std::int64_t>(longest / (kLongReduction / 8), 2 * target.multiprocessors));
}

// The contiguous row axis last, so that neighbouring threads read neighbouring elements.
RowForm with_contiguous_row_last(RowForm form, std::uint32_t axis) {
  if (form.rows.empty() || form.rows.back() == axis) return form;
  std::erase(form.rows, axis);
  form.rows.push_back(axis);
  return form;
}

}  // namespace

std::vector<KernelSource> row_reduction(const Kernel& kernel, const Graph& graph, const Target& target) {
  std::optional<RowForm> form = row_form(kernel, graph);
  if (!form) return {};
  const Direction direction = direction_of(*form, graph);
  const ExprPool& pool = form->kernel.pool;
  if (form->columns.empty()) {
    std::int64_t longest = 0;
    for (const ExprId r : form->reductions)
      longest = std::max(longest, value_at_hint(length_of(pool, r), pool.bounds().symbols));
    if (direction.product || longest <= kSmallWindow) return {};
    if (direction.along_rows == 0 && direction.along_reduction == 0 && longest <= 8 * kSmallWindow) return {};
  }
  const RowLayout layout = choose_layout(*form, direction, target);
  if (layout.team == RowTeam::kColumn) *form = with_contiguous_row_last(std::move(*form), direction.contiguous_row);
  RowSplit split;
  RowForm ready = layout.team == RowTeam::kColumn ? *form : split_vectors(*form, graph, split);
  ready.reductions = row_reductions(ready.kernel);  // the copy has them under new ids
  const IndexExpr threads = point_count(ready.kernel.pool, ready.rows) * layout.parts;
  const bool wide = needs_wide_index(ready.kernel, graph, threads) || needs_wide_index(kernel, graph, threads);
  if (const int blocks = blocks_for_partials(ready, target); blocks > 1) {
    const RowLayout partial{RowTeam::kBlock, 256, 1, 256};
    return {emit_rows({ready, graph, partial, split, wide, RowStep::kPartial, blocks}, kernel),
            emit_rows({ready, graph, partial, split, wide, RowStep::kFinal, blocks}, kernel)};
  }
  return {emit_rows({ready, graph, layout, split, wide}, kernel)};
}

}  // namespace fusec
