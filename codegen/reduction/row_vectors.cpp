#include "codegen/reduction/row_vectors.h"

#include <algorithm>
#include <map>
#include <span>

#include "analysis/kernel/axis_merging.h"
#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "codegen/access/direct.h"
#include "codegen/movement/pointwise.h"
#include "ir/type.h"
#include "schedule/reduction/row_exponentials.h"
#include "schedule/reduction/row_values.h"

namespace fusec {
namespace {

using Outputs = std::span<const KernelOutput>;

// Elements per vector along an axis: 16 bytes of the widest dtype, so that neighbouring threads' accesses are adjacent
// and no sector is requested twice; 1 if accesses do not allow it. Operands shared by rows come from caches and count
// only if there are no others. `even`: the extent must be a multiple too. The planner bounds the width by the same rule
// (elements_of_vector in schedule/reduction/row_form, which row_layout and row_candidates use).
int vector_width(const RowForm& form, const Graph& graph, int most, std::uint32_t axis,
                 const std::vector<ExprId>& roots, Outputs outputs, bool even = true) {
  const ExprPool& pool = form.kernel.pool;
  const IndexExpr& extent = pool.extent(axis);
  int widest = 0, widest_of_rows = 0;
  const Variable variable{Variable::Kind::kAxis, axis};
  for (const auto& [at, dtype] : accesses_of(graph, pool, roots, outputs)) {
    if (coefficient_of(at, variable) != 1) continue;
    widest = std::max(widest, bits(dtype));
    if (mentions_any(at, form.rows)) widest_of_rows = std::max(widest_of_rows, bits(dtype));
  }
  if (widest == 0) return 1;
  int width = std::min(most, elements_of_vector(widest_of_rows > 0 ? widest_of_rows : widest));
  while (even && width > 1 && !proves_multiple_of(extent, width, pool.bounds())) width /= 2;
  return width;
}

// The maximum vector width: smaller for expensive elements, because loops over vectors are unrolled.
int most_of_vector(const RowForm& form, const Graph& graph) {
  constexpr int kWidest = 8;
  const int code = form.segments.empty() ? code_of_row(form, graph) : 0;
  int most = kWidest;
  while (most > 1 && most * code > kMaxUnrolledInstructions) most /= 2;
  return most;
}

// The constant number of elements before contiguous rows; nothing if rows are not contiguous.
std::optional<std::int64_t> gap_before_rows(const RowForm& form, std::uint32_t axis, const IndexExpr& start) {
  const ExprPool& pool = form.kernel.pool;
  IndexExpr flat = 0;
  for (const std::uint32_t a : form.rows) flat = flat * pool.extent(a) + IndexExpr::axis(a);
  const auto gap = simplify(start - flat * pool.extent(axis), pool.bounds()).as_constant();
  return gap && *gap >= 0 ? gap : std::nullopt;
}

// The start of unaligned rows: the position of column 0 in most operands and outputs along `axis`. `exact`: rows must
// be contiguous. Operands with another alignment (such as a vector shared by rows) are read element by element.
std::optional<IndexExpr> common_start(const RowForm& form, const Graph& graph, std::uint32_t axis,
                                      const std::vector<ExprId>& roots, Outputs outputs, bool exact) {
  const ExprPool& pool = form.kernel.pool;
  std::map<IndexExpr, int> starts;
  for (const auto& [at, dtype] : accesses_of(graph, pool, roots, outputs)) {
    if (coefficient_of(at, {Variable::Kind::kAxis, axis}) != 1) continue;
    const IndexExpr start = simplify(at - IndexExpr::axis(axis), pool.bounds());
    bool of_rows = form.rows.empty(), of_others = false;
    for (const Variable v : variables_of(start)) {
      const bool row = v.kind == Variable::Kind::kAxis && std::ranges::find(form.rows, v.id) != form.rows.end();
      of_rows = of_rows || row;
      of_others = of_others || (!row && v.kind != Variable::Kind::kSymbol);
    }
    if (of_rows && !of_others && (!exact || gap_before_rows(form, axis, start))) ++starts[start];
  }
  const auto most = std::ranges::max_element(starts, {}, [](const auto& entry) { return entry.second; });
  return most == starts.end() ? std::nullopt : std::optional(most->first);
}

// True if the index contains a quotient or remainder of one of the axes.
bool divides_any_of(const IndexExpr& e, const std::vector<std::uint32_t>& axes) {
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors)
      if (factor->kind != IndexAtom::Kind::kVariable &&
          (mentions_any(factor->a, axes) || mentions_any(factor->b, axes)))
        return true;
  return false;
}

double bytes_of(const TensorType& type, const Bounds& bounds) {
  double bytes = bits(type.dtype) / 8.0;
  for (const Dim& d : type.shape) bytes *= static_cast<double>(value_at_hint(d, bounds.symbols));
  return bytes;
}

double bytes_of_stored(const KernelOutput& output, const ExprPool& pool) {
  std::vector<std::uint32_t> along;
  for (const std::uint32_t a : output.axes)
    if (std::ranges::any_of(output.index, [&](const IndexExpr& e) { return mentions_any(e, {a}); })) along.push_back(a);
  return static_cast<double>(value_at_hint(point_count(pool, along), pool.bounds().symbols)) * bits(output.type.dtype) /
         8.0;
}

// True if many operands are parts of longer rows (padding, slices), or many results are parts of longer rows (concat),
// with a different alignment than `start`. They would be accessed element by element, a vector apart between threads,
// and request every sector several times. Neighbouring threads should then take neighbouring elements.
bool parts_have_other_layout(const RowForm& form, const Graph& graph, const IndexExpr& start, int width) {
  const ExprPool& pool = form.kernel.pool;
  std::vector<std::uint32_t> along = form.columns;
  for (const ExprId r : form.reductions) along.insert(along.end(), pool[r].axes.begin(), pool[r].axes.end());
  const auto has_other_layout = [&](const IndexExpr& at, std::uint32_t axis) {
    return !proves_multiple_of(simplify(at - IndexExpr::axis(axis) - start, pool.bounds()), width, pool.bounds());
  };
  std::map<ValueId, bool> elsewhere;  // by tensor read along a row
  for (const ExprId id : reachable(pool, roots_of(form.kernel))) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kLoad) continue;
    const IndexExpr at = position_of(graph, pool, id);
    const auto axis = std::ranges::find_if(along, [&](std::uint32_t a) {
      return coefficient_of(at, {Variable::Kind::kAxis, a}) == 1;
    });
    if (axis == along.end()) continue;
    elsewhere[n.source] |= n.args[0] != kNoExpr && has_other_layout(at, *axis);
  }
  double bytes = 0, bytes_elsewhere = 0;
  for (const auto& [value, is_elsewhere] : elsewhere) {
    const double of_tensor = bytes_of(graph.tensor(value), pool.bounds());
    bytes += of_tensor;
    if (is_elsewhere) bytes_elsewhere += of_tensor;
  }
  for (const KernelOutput& output : form.kernel.outputs) {
    const double of_output = bytes_of_stored(output, pool);
    bytes += of_output;
    if (form.columns.empty()) continue;
    const IndexExpr at = position_of(pool, output);
    const bool runs = coefficient_of(at, {Variable::Kind::kAxis, form.columns.back()}) == 1;
    if (runs && has_other_layout(at, form.columns.back())) bytes_elsewhere += of_output;
  }
  return bytes_elsewhere * (width - 1) > bytes / 4;
}

// True if something depends on the position within the row. Vectors of the tensor extend beyond both ends of an
// unaligned row. Binding end elements as lanes of vector 0 is simplest, but then the extents of the two axes do not
// bound the position: a mask could be dropped as always true, and divisions would be wrong. Such forms bind the ends
// exactly.
bool reads_position(const RowForm& form, const Graph& graph, const std::vector<std::uint32_t>& axes) {
  const ExprPool& pool = form.kernel.pool;
  std::vector<ExprId> roots = roots_of(form.kernel);
  roots.insert(roots.end(), form.reductions.begin(), form.reductions.end());
  for (const ExprId id : reachable(pool, roots))
    if (pool[id].op == ExprOp::kIndex && mentions_any(pool[id].indices[0], axes)) return true;
  return std::ranges::any_of(accesses_of(graph, pool, roots, form.kernel.outputs),
                             [&](const Access& access) { return divides_any_of(access.at, axes); });
}

// Splits the last column, and the last axis of the reductions with these axes, into vectors and lanes. `vectors`: of
// the tensor, for unaligned rows; split.start is then over the form's axes before, and over those of the result
// afterwards.
RowForm with_axes_split(const RowForm& form, const std::vector<std::uint32_t>& reduced, RowSplit& split,
                        const IndexExpr& vectors = 0) {
  const ExprPool& old = form.kernel.pool;
  const std::vector<bool> shared = shared_exponentials(form.kernel);
  RowForm result;
  result.segments = form.segments;
  result.segment = form.segment;
  const auto split_axes = [&](ExprPool& pool, ExprCopier& copier) {
    // Exponentials become powers of two.
    copier.rewritten = [&](ExprId id, const ExprCopier::Copied& copied) {
      return shared[id] ? shared_power_of_two(old, id, pool, copied) : kNoExpr;
    };
    const auto element = [&](std::uint32_t axis, int width, std::vector<std::uint32_t>& axes) {
      const bool unaligned = width > 1 && split.start;
      axes.push_back(pool.new_axis(unaligned ? vectors : simplify(floor_div(old.extent(axis), width), pool.bounds())));
      const IndexExpr vector = IndexExpr::axis(axes.back());
      if (width == 1) return vector;
      axes.push_back(pool.new_axis(width));
      return vector * width + IndexExpr::axis(axes.back()) - (unaligned ? *split.start : 0);
    };
    AxisChange change;
    std::map<std::uint32_t, IndexExpr> row;
    for (const std::uint32_t a : form.rows) change.values.push_back(row[a] = element(a, 1, result.rows));
    if (split.start)
      split.start = simplify(
          substitute(
              *split.start,
              [&](Variable v) { return v.kind == Variable::Kind::kAxis ? std::optional(row.at(v.id)) : std::nullopt; }),
          pool.bounds());
    for (const std::uint32_t a : form.columns)
      change.values.push_back(element(a, a == form.columns.back() ? split.column_width : 1, result.columns));
    change.new_axes = result.rows;
    change.new_axes.insert(change.new_axes.end(), result.columns.begin(), result.columns.end());
    if (split.reduction_width == 1) return change;
    for (const std::uint32_t a : reduced)
      copier.axis[a] = element(a, a == reduced.back() ? split.reduction_width : 1, split.reduction);
    copier.reduction_axes[reduced] = split.reduction;
    return change;
  };
  result.kernel = change_axes(form.kernel, split_axes, result.segments);
  return result;
}

// True if some output runs along some of the columns, but not along all.
bool is_ragged(const RowForm& form) {
  return std::ranges::any_of(form.kernel.outputs, [&](const KernelOutput& output) {
    const std::size_t lacking = columns_without(form, output).size();
    return lacking != 0 && lacking != form.columns.size();
  });
}

// The form over the vectors of the tensor for unaligned rows; nothing if accesses do not allow that.
std::optional<RowForm> unaligned_vectors(const RowForm& form, const Graph& graph, int most, RowSplit& split) {
  constexpr std::int64_t kShortest = 128;  // elements of a row; shorter rows consist mostly of ends
  const ExprPool& old = form.kernel.pool;
  const std::vector<std::uint32_t> reduced = old[form.reductions.back()].axes;
  if (reduced.size() != 1 || form.columns.size() > 1 || is_ragged(form)) return std::nullopt;
  const IndexExpr length = old.extent(reduced[0]);
  if (!form.columns.empty() && old.extent(form.columns[0]) != length) return std::nullopt;
  std::vector<std::uint32_t> along = reduced;
  along.insert(along.end(), form.columns.begin(), form.columns.end());
  const bool exact_ends = reads_position(form, graph, along);
  std::vector<ExprId> bodies;
  for (const ExprId r : form.reductions) {
    const ExprNode& n = old[r];
    if (n.axes != reduced) return std::nullopt;
    bodies.push_back(n.args[0]);
  }
  int width = vector_width(form, graph, most, reduced[0], bodies, {}, false);
  if (!form.columns.empty())
    width = std::min(
        width, vector_width(form, graph, most, form.columns[0], roots_of(form.kernel), form.kernel.outputs, false));
  if (width == 1 || value_at_hint(length, old.bounds().symbols) < kShortest) return std::nullopt;
  const std::optional<IndexExpr> start = common_start(form, graph, reduced[0], bodies, {}, exact_ends);
  if (!start || parts_have_other_layout(form, graph, *start, width)) return std::nullopt;
  if (!form.columns.empty()) {
    const auto of_columns =
        common_start(form, graph, form.columns[0], roots_of(form.kernel), form.kernel.outputs, exact_ends);
    if (!of_columns || !proves_multiple_of(simplify(*of_columns - *start, old.bounds()), width, old.bounds()))
      return std::nullopt;
  }
  RowSplit now{
      .reduction_width = width, .column_width = width, .start = start, .length = length, .exact_ends = exact_ends};
  IndexExpr elements = length * point_count(old, form.rows);
  // The ends are lanes of vectors that may be partly outside of the tensor.
  if (exact_ends) elements += *gap_before_rows(form, reduced[0], *start) + width - 1;
  RowForm result = with_axes_split(form, reduced, now, simplify(floor_div(elements, width), old.bounds()));
  if (count_divisions(result.kernel, graph) > count_divisions(form.kernel, graph)) return std::nullopt;
  split = std::move(now);
  return result;
}

}  // namespace

RowForm split_vectors(const RowForm& form, const Graph& graph, RowSplit& split) {
  const ExprPool& old = form.kernel.pool;
  std::vector<ExprId> bodies;
  const std::vector<std::uint32_t> reduced = old[form.reductions.back()].axes;
  const int most = most_of_vector(form, graph);
  for (const ExprId r : form.reductions)
    if (old[r].axes == reduced) bodies.push_back(old[r].args[0]);
  split.reduction_width = vector_width(form, graph, most, reduced.back(), bodies, {});
  if (!form.columns.empty() && !is_ragged(form))
    split.column_width =
        vector_width(form, graph, most, form.columns.back(), roots_of(form.kernel), form.kernel.outputs);
  const int widest = std::max(split.reduction_width, split.column_width);
  if (widest > 1 && form.segments.empty() && parts_have_other_layout(form, graph, 0, widest))
    split.reduction_width = split.column_width = 1;
  // The vector widths that aligned rows would allow.
  const int wanted = vector_width(form, graph, most, reduced.back(), bodies, {}, false);
  if (split.reduction_width < wanted && split.column_width < wanted && form.segments.empty())
    if (auto unaligned = unaligned_vectors(form, graph, most, split)) return *std::move(unaligned);
  // Loops of equal extent use the same width, so that one can keep what another reads.
  if (split.reduction_width > 1 && split.column_width > 1 && form.columns.size() == reduced.size() &&
      old.extent(form.columns.back()) == old.extent(reduced.back()))
    split.reduction_width = split.column_width = std::min(split.reduction_width, split.column_width);
  return with_axes_split(form, reduced, split);
}

}  // namespace fusec
