#include "schedule/reduction/row_segments.h"

#include <algorithm>
#include <bit>

#include "analysis/kernel/copy_expr.h"
#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr std::int64_t kShortestSegment = 8;  // columns of a segment: at least one vector
constexpr int kSegmentVectorBits = 128, kMostOfVector = 8;

// The reductions of whole rows and of segments, and the axes of rows and columns.
struct Parts {
  std::vector<ExprId> whole, segments;
  std::vector<std::uint32_t> rows, columns;  // the last column axis runs along a segment
  std::int64_t length = 0;                   // of a segment
};

std::optional<Parts> parts_of(const Kernel& kernel) {
  const ExprPool& pool = kernel.pool;
  const auto depends = dependences(pool);
  Parts parts;
  std::vector<ExprId> reductions = row_reductions(kernel);
  if (reductions.size() < 2) return std::nullopt;
  const auto rows = depends[*std::ranges::min_element(reductions, {}, [&](ExprId r) { return depends[r].size(); })];
  parts.rows.assign(rows.begin(), rows.end());
  for (const ExprId r : reductions)
    (std::ranges::equal(depends[r], parts.rows) ? parts.whole : parts.segments).push_back(r);
  if (parts.segments.empty()) return std::nullopt;
  for (const std::uint32_t a : kernel.outputs[0].axes)
    if (!contains(parts.rows, a)) parts.columns.push_back(a);
  if (parts.columns.size() < 2) return std::nullopt;
  parts.length = pool.extent(parts.columns.back()).as_constant().value_or(0);
  if (parts.length < kShortestSegment || !std::has_single_bit(static_cast<std::uint64_t>(parts.length)))
    return std::nullopt;
  std::vector<std::uint32_t> of_segment = kernel.outputs[0].axes;
  std::erase(of_segment, parts.columns.back());
  std::ranges::sort(of_segment);
  for (const ExprId id : reachable(pool, roots_of(kernel))) {
    const ExprNode& n = pool[id];
    if (n.op != ExprOp::kReduce) continue;
    const bool segment = std::ranges::find(parts.segments, id) != parts.segments.end();
    if (!segment && std::ranges::find(parts.whole, id) == parts.whole.end()) return std::nullopt;
    if (n.axes.size() != 1 || segment != pool.extent(n.axes[0]).is(parts.length)) return std::nullopt;
    const bool extreme = n.reduction == Reduction::kArgMax || n.reduction == Reduction::kArgMin;
    if (segment && (extreme || !std::ranges::equal(depends[id], of_segment))) return std::nullopt;
  }
  return parts;
}

// True if all operands and outputs are contiguous along rows and segments, so that neighbouring lanes hold a segment.
bool runs_along_segments(const Kernel& kernel, const Parts& parts, const Graph& graph) {
  const ExprPool& pool = kernel.pool;
  std::vector<std::uint32_t> along = {parts.columns.back()};
  for (const auto& reductions : {parts.whole, parts.segments})
    for (const ExprId r : reductions)
      if (!contains(along, pool[r].axes[0])) along.push_back(pool[r].axes[0]);
  int widest = 0;
  for (const auto& [at, dtype] : accesses_of(graph, pool, roots_of(kernel), kernel.outputs))
    for (const std::uint32_t axis : along) {
      if (!mentions(at, {Variable::Kind::kAxis, axis})) continue;
      widest = std::max(widest, bits(dtype));
      if (coefficient_of(at, {Variable::Kind::kAxis, axis}) != 1) return false;
    }
  return widest > 0 &&
         parts.length <= std::int64_t{kWarpLanes} * std::clamp(kSegmentVectorBits / widest, 1, kMostOfVector);
}

}  // namespace

std::optional<RowForm> segmented_rows(const Kernel& kernel, const Graph& graph) {
  const std::optional<Parts> parts = parts_of(kernel);
  if (!parts || !runs_along_segments(kernel, *parts, graph)) return std::nullopt;
  RowForm form;
  form.segment = parts->length;
  const std::size_t whole = parts->whole.size();
  std::vector<ExprId> follow = parts->whole;
  follow.insert(follow.end(), parts->segments.begin(), parts->segments.end());
  form.kernel = change_axes(
      kernel,
      [&](ExprPool& pool, ExprCopier& copier) {
        IndexExpr count = 1;
        for (const std::uint32_t a : parts->columns) count *= kernel.pool.extent(a);
        for (const std::uint32_t a : parts->rows) form.rows.push_back(pool.new_axis(kernel.pool.extent(a)));
        form.columns = {pool.new_axis(count)};
        const IndexExpr column = IndexExpr::axis(form.columns[0]);
        AxisChange change;
        for (const std::uint32_t a : kernel.outputs[0].axes) {
          IndexExpr inner = 1;
          if (const auto row = std::ranges::find(parts->rows, a); row != parts->rows.end()) {
            change.values.push_back(IndexExpr::axis(form.rows[static_cast<std::size_t>(row - parts->rows.begin())]));
            continue;
          }
          const auto at = std::ranges::find(parts->columns, a);
          for (auto after = at + 1; after != parts->columns.end(); ++after) inner *= kernel.pool.extent(*after);
          const IndexExpr before = floor_div(column, inner);
          change.values.push_back(at == parts->columns.begin() ? before : floor_mod(before, kernel.pool.extent(a)));
        }
        change.new_axes = form.rows;
        change.new_axes.push_back(form.columns[0]);
        for (const ExprId r : parts->segments) {
          const std::vector<std::uint32_t>& axes = kernel.pool[r].axes;
          if (copier.axis[axes[0]]) continue;
          copier.axis[axes[0]] = floor_mod(column, parts->length);
          copier.reduction_axes[axes] = {pool.new_axis(parts->length)};
        }
        return change;
      },
      follow);
  form.reductions.assign(follow.begin(), follow.begin() + static_cast<std::ptrdiff_t>(whole));
  form.segments.assign(follow.begin() + static_cast<std::ptrdiff_t>(whole), follow.end());
  std::ranges::sort(form.reductions);  // operands first
  std::ranges::sort(form.segments);
  return form;
}

bool is_of_segments(const RowForm& form, const KernelOutput& output) {
  if (form.segments.empty()) return false;
  const ExprPool& pool = form.kernel.pool;
  IndexExpr columns = 1;
  for (const std::uint32_t a : form.columns) columns *= pool.extent(a);
  return std::ranges::any_of(output.index, [&](const IndexExpr& e) { return mentions_any(e, form.columns); }) &&
         element_count(output.type.shape) &&
         simplify(*element_count(output.type.shape) * form.segment - point_count(pool, form.rows) * columns,
                  pool.bounds())
             .is(0);
}

}  // namespace fusec
