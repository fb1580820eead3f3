#include "schedule/reduction/row_folding.h"

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/kernel/loads.h"
#include "analysis/kernel/reduction_rewrites.h"
#include "schedule/kernel_forms.h"
#include "schedule/reduction/blocks_per_row.h"

namespace fusec {
namespace {

constexpr int kMostFoldedElements = 8;
constexpr std::int64_t kMostLoose = 4;  // elements outside of whole pieces, which every thread computes

// A row as `elements_per_column` pieces of the columns' length after `before` elements; `loose` elements in total are
// outside of the pieces.
struct Fold {
  int elements_per_column = 1;
  std::int64_t loose = 0, before = 0;
};

std::optional<Fold> fold_of(const ExprPool& pool, const IndexExpr& length, const IndexExpr& columns) {
  for (int elements_per_column = 1; elements_per_column <= kMostFoldedElements; ++elements_per_column) {
    const auto loose = simplify(length - columns * elements_per_column, pool.bounds()).as_constant();
    if (!loose) continue;
    if (*loose < 0) return std::nullopt;
    if (*loose <= kMostLoose && (elements_per_column > 1 || *loose > 0))
      return Fold{.elements_per_column = elements_per_column, .loose = *loose};
  }
  return std::nullopt;
}

// Splits reductions over `length` elements into pieces.
void fold(Kernel& kernel, const IndexExpr& length, const IndexExpr& columns, const Fold& fold) {
  ExprPool& pool = kernel.pool;
  const std::uint32_t axis = pool.new_axis(columns);
  rewrite_reductions(kernel, [&](const ExprNode& n) {
    if (n.axes.size() != 1 || n.axes[0] == axis || pool.extent(n.axes[0]) != length) return kNoExpr;
    const ExprOp combine = *combining_op(n.reduction);
    ExprId body = kNoExpr;
    for (int p = 0; p < fold.elements_per_column; ++p) {
      const ExprId piece = reduction_operand_at(pool, n, IndexExpr::axis(axis) + columns * p + fold.before);
      body = p == 0 ? piece : pool.binary(combine, body, piece);
    }
    ExprId whole = pool.reduce(n.reduction, {axis}, body);
    for (std::int64_t i = 0; i < fold.loose; ++i) {
      const IndexExpr place = i < fold.before ? IndexExpr(i) : columns * fold.elements_per_column + i;
      whole = pool.binary(combine, whole, reduction_operand_at(pool, n, place));
    }
    return whole;
  });
}

// The unmasked accesses to a row's own elements along an axis, expressed over the axis of columns. Unmasked loads can
// be kept.
std::set<std::pair<ValueId, IndexExpr>> places_along(const RowForm& form, const Graph& graph, std::uint32_t axis,
                                                     const std::vector<ExprId>& needed) {
  const ExprPool& pool = form.kernel.pool;
  std::set<std::pair<ValueId, IndexExpr>> places;
  for (const ExprId id : needed) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad || n.args[0] != kNoExpr) continue;
    const IndexExpr at = position_of(graph, pool, id);
    const auto runs_along = [&](std::uint32_t a) { return mentions(at, Variable{Variable::Kind::kAxis, a}); };
    if (!runs_along(axis) || (!form.rows.empty() && std::ranges::none_of(form.rows, runs_along))) continue;
    places.emplace(n.source, simplify(with_axis(at, axis, IndexExpr::axis(form.columns[0])), pool.bounds()));
  }
  return places;
}

// True if loops over the columns read elements that a reduction of the same length reads.
bool finds_what_is_reduced(const RowForm& form, const Graph& graph) {
  const ExprPool& pool = form.kernel.pool;
  const auto of_columns = places_along(form, graph, form.columns[0], outside_reductions(form, roots_of(form.kernel)));
  return std::ranges::any_of(form.reductions, [&](ExprId r) {
    const ExprNode& n = pool[r];
    if (n.axes.size() != 1 || pool.extent(n.axes[0]) != pool.extent(form.columns[0])) return false;
    const auto reduced = places_along(form, graph, n.axes[0], outside_reductions(form, {n.args[0]}));
    return std::ranges::any_of(reduced, [&](const auto& place) { return of_columns.contains(place); });
  });
}

// The tensors that these expressions read along an axis, sorted.
std::vector<ValueId> read_along(const ExprPool& pool, std::uint32_t axis, const std::vector<ExprId>& needed) {
  std::vector<ValueId> read;
  for (const ExprId id : needed)
    if (pool[id].op == ExprOp::kLoad && std::ranges::any_of(pool[id].indices, [&](const IndexExpr& e) {
          return mentions(e, Variable{Variable::Kind::kAxis, axis});
        }))
      read.push_back(pool[id].source);
  std::ranges::sort(read);
  return read;
}

// A cheap test before the fold: whether the columns read a tensor that a reduction reads, of `length` or as long as the
// columns.
bool may_find_what_is_reduced(const RowForm& form, const IndexExpr& length, const IndexExpr& columns) {
  const ExprPool& pool = form.kernel.pool;
  const auto of_columns = read_along(pool, form.columns[0], outside_reductions(form, roots_of(form.kernel)));
  return !of_columns.empty() && std::ranges::any_of(form.reductions, [&](ExprId r) {
    const ExprNode& n = pool[r];
    if (n.axes.size() != 1 || (pool.extent(n.axes[0]) != length && pool.extent(n.axes[0]) != columns)) return false;
    const auto reduced = read_along(pool, n.axes[0], outside_reductions(form, {n.args[0]}));
    return std::ranges::any_of(reduced, [&](ValueId v) { return std::ranges::binary_search(of_columns, v); });
  });
}

bool may_be_folded(const RowForm& form, const IndexExpr& length, int elements_per_column) {
  constexpr int kMaxCodeSize = kMaxUnrolledInstructions / 8;
  const ExprPool& pool = form.kernel.pool;
  if (value_at_hint(length, pool.bounds().symbols) > kOnChipOfBlock) return false;
  return std::ranges::all_of(form.reductions, [&](ExprId r) {
    const ExprNode& n = pool[r];
    if (n.axes.size() != 1 || pool.extent(n.axes[0]) != length) return true;
    return combining_op(n.reduction) && elements_per_column * code_of_element(form, {n.args[0]}) <= kMaxCodeSize;
  });
}

}  // namespace

RowForm with_rows_folded(RowForm form, const Graph& graph) {
  if (form.columns.size() != 1 || !form.segments.empty()) return form;
  const IndexExpr columns = form.kernel.pool.extent(form.columns[0]);
  std::set<IndexExpr> lengths;
  for (const ExprId r : form.reductions) {
    const ExprNode& n = form.kernel.pool[r];
    if (n.axes.size() == 1) lengths.insert(form.kernel.pool.extent(n.axes[0]));
  }
  for (const IndexExpr& length : lengths) {
    std::optional<Fold> candidate = fold_of(form.kernel.pool, length, columns);
    if (!candidate || !may_find_what_is_reduced(form, length, columns) ||
        !may_be_folded(form, length, candidate->elements_per_column))
      continue;
    for (; candidate->before <= candidate->loose; ++candidate->before) {
      RowForm folded = form;
      fold(folded.kernel, length, columns, *candidate);
      folded.reductions = row_reductions(folded.kernel);
      if (!finds_what_is_reduced(folded, graph)) continue;
      folded.elements_per_column = std::max(form.elements_per_column, candidate->elements_per_column);
      form = std::move(folded);
      break;
    }
  }
  return form;
}

}  // namespace fusec
