#include "schedule/reduction/strided_reduction_layout.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/kernel/loads.h"
#include "ir/type.h"
#include "schedule/kernel_forms.h"
#include "schedule/reduction/extra_outputs.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

constexpr int kMostInterleavedRows = 512;            // interleaved rows, at most, where a line could not be strips
constexpr std::int64_t kMostElementsPerLine = 8192;  // elements of a row per line

// Reads the form and finds the contiguous loads and stores.
class StridedReductionLayoutReader {
 public:
  StridedReductionLayoutReader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  std::optional<StridedReductionLayout> read(bool in_words) {
    if (!see_all() || !(in_words ? choose_words() : choose_vectors())) return std::nullopt;
    plan_.form = form_;
    plan_.line_broadcasts = line_broadcasts_;
    const bool unaligned = may_be_unaligned();
    return StridedReductionLayout{
        .plan = std::move(plan_), .widest_bits = widest_, .narrowest_bits = narrowest_, .may_be_unaligned = unaligned};
  }

 private:
  bool choose_words() {
    if (plan_.elements_per_line > 1) return false;
    plan_.width = elements_of_vector(widest_);
    while (plan_.width > 1 && !proves_multiple_of(plan_.line_stride, plan_.width, pool_.bounds())) plan_.width /= 2;
    plan_.in_strips = true;
    return plan_.width * narrowest_ % 32 == 0;
  }

  // False if some load or store is not contiguous.
  bool see_all() {
    if (!find_axes() || plan_.line_stride.is(0)) return false;  // empty rows are left to other schedules
    for (const ExprId id : reachable(pool_, all_roots()))
      if (!see(id)) return false;
    if (plan_.loads.empty()) return false;
    for (const KernelOutput& output : form_.kernel.outputs) {
      const std::size_t lacking = columns_without(form_, output).size();
      if (form_.columns.empty() || lacking == form_.columns.size()) continue;
      if (lacking != 0 || !is_stored_along(output, form_.columns)) return false;
    }
    for (const KernelOutput& output : form_.extra_outputs)
      if (!is_stored_along(output, reduction_loops(form_).front().axes)) return false;
    return true;
  }

  bool choose_vectors() {
    plan_.width = elements_of_vector(widest_);
    if (plan_.width * narrowest_ % 32 != 0) return false;
    if (plan_.elements_per_line > 1) return !has_whole_sectors_per_line() && choose_elements_per_line();
    const auto rows = plan_.line_stride.as_constant();
    plan_.in_strips = !(rows && *rows <= kMaxStripRows) && plan_.width > 1 &&
                      proves_multiple_of(plan_.line_stride, plan_.width, pool_.bounds());
    if (!plan_.in_strips && (line_broadcasts_ || !rows || *rows > kMostInterleavedRows)) {
      if (!may_be_unaligned()) return false;
      plan_.in_strips = plan_.unaligned = true;
    }
    if (!plan_.in_strips) plan_.rows = static_cast<int>(*rows);
    return true;
  }
  bool may_be_unaligned() const {
    return !line_broadcasts_ && plan_.width > 1 && form_.extra_outputs.empty() && plan_.line_stride.as_constant();
  }

  // True if rows have whole sectors in each line: other schedules then do as well.
  bool has_whole_sectors_per_line() const { return plan_.elements_per_line * narrowest_ % (8 * kSectorBytes) == 0; }

  bool choose_elements_per_line() {
    if (plan_.width == 1 || line_broadcasts_) return false;
    const auto line = plan_.line_stride.as_constant();
    plan_.in_strips = proves_multiple_of(plan_.line_stride, plan_.width, pool_.bounds());
    if (!plan_.in_strips && (!line || *line > kMostInterleavedRows || !plan_.outer.empty())) return false;
    if (!plan_.in_strips) plan_.rows = static_cast<int>(*line) / plan_.elements_per_line;
    return true;
  }

  bool find_axes() {
    if (form_.rows.empty()) return false;
    if (!form_.columns.empty()) loop_axes_.push_back(form_.columns);
    for (const ExprId r : form_.reductions) loop_axes_.push_back(pool_[r].axes);
    const auto extents_of = [&](const std::vector<std::uint32_t>& axes) {
      std::vector<IndexExpr> extents;
      for (const std::uint32_t a : axes) extents.push_back(pool_.extent(a));
      return extents;
    };
    const std::vector<IndexExpr> extents = extents_of(loop_axes_[0]);
    if (std::ranges::any_of(loop_axes_, [&](const auto& axes) { return extents_of(axes) != extents; })) return false;
    const auto elements_per_line = extents.size() == 2 ? extents[1].as_constant() : 1;
    if (extents.size() > 2 || !elements_per_line || *elements_per_line > kMostElementsPerLine) return false;
    length_ = extents[0];
    plan_.elements_per_line = static_cast<int>(*elements_per_line);
    for (const auto& axes : loop_axes_) along_.insert(along_.end(), axes.begin(), axes.end());
    std::ranges::sort(along_);
    for (const std::uint32_t a : form_.rows) {  // the first load determines the inner axis
      if (range_of(pool_.extent(a), pool_.bounds()).min < 2 || !is_innermost(a)) continue;
      plan_.inner = a;
      plan_.line_stride = pool_.extent(a) * plan_.elements_per_line;
      for (const std::uint32_t other : form_.rows)
        if (other != a) {
          plan_.outer.push_back(other);
          outer_ = outer_ * pool_.extent(other) + IndexExpr::axis(other);
        }
      return true;
    }
    return false;
  }

  std::vector<ExprId> all_roots() const {
    std::vector<ExprId> roots = roots_of(form_.kernel);
    std::ranges::copy(roots_of_extra_outputs(form_), std::back_inserter(roots));
    return roots;
  }

  // True if the output is contiguous along the loop.
  bool is_stored_along(const KernelOutput& output, const std::vector<std::uint32_t>& loop) {
    see_width(output.type.dtype);
    return bits(output.type.dtype) >= 8 && follows(position_of(pool_, output), loop);
  }

  bool runs_along(ExprId id) const {
    return std::ranges::any_of(along_, [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); });
  }

  bool is_innermost(std::uint32_t axis) const {
    for (const ExprId id : reachable(pool_, all_roots()))
      if (pool_[id].op == ExprOp::kLoad && runs_along(id) && std::ranges::binary_search(depends_[id], axis))
        return coefficient_of(position_of(graph_, pool_, id), {Variable::Kind::kAxis, axis}) == plan_.elements_per_line;
    return false;
  }

  bool follows(const IndexExpr& at, const std::vector<std::uint32_t>& loop) const {
    const IndexExpr row = IndexExpr::axis(plan_.inner) * plan_.elements_per_line;
    IndexExpr place = (outer_ * length_ + IndexExpr::axis(loop[0])) * plan_.line_stride + row;
    if (loop.size() > 1) place += IndexExpr::axis(loop[1]);
    return simplify(at - place, pool_.bounds()).is(0);
  }

  // True for a line-invariant operand of rows with several elements per line: it has one value per column of a row.
  bool is_of_columns(ExprId id) const {
    if (plan_.elements_per_line == 1) return false;
    const auto runs = [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); };
    return std::ranges::none_of(loop_axes_, [&](const auto& loop) { return runs(loop[0]); }) &&
           std::ranges::none_of(plan_.outer, runs);
  }

  // The position of an element within its line.
  IndexExpr column_of(ExprId load) const {
    IndexExpr column = IndexExpr::axis(plan_.inner) * plan_.elements_per_line;
    for (const auto& loop : loop_axes_)
      if (std::ranges::binary_search(depends_[load], loop[1])) return column + IndexExpr::axis(loop[1]);
    return column;
  }

  void see_width(DType dtype) {
    widest_ = std::max(widest_, bits(dtype));
    narrowest_ = std::min(narrowest_, bits(dtype));
  }

  bool see(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kReduce && std::ranges::find(form_.reductions, id) == form_.reductions.end()) return false;
    if (n.op == ExprOp::kLoad && !runs_along(id)) note_broadcast(id);
    if (n.op != ExprOp::kLoad || !runs_along(id)) return true;
    if (n.args[0] != kNoExpr || bits(n.dtype) < 8) return false;
    const IndexExpr at = position_of(graph_, pool_, id);
    if (is_of_columns(id)) {
      if (simplify(at - column_of(id), pool_.bounds()).is(0)) plan_.line_invariant_loads.push_back(id);
      return true;
    }
    if (std::ranges::none_of(loop_axes_, [&](const auto& loop) { return follows(at, loop); })) {
      line_broadcasts_ = true;  // one value per line, the same for several lanes
      return !std::ranges::binary_search(depends_[id], plan_.inner);
    }
    see_width(n.dtype);
    plan_.loads.push_back(id);
    return true;
  }

  // Notes a contiguous, possibly unaligned operand with one value per element of a line.
  void note_broadcast(ExprId id) {
    const ExprNode& n = pool_[id];
    if (plan_.elements_per_line > 1 || n.args[0] != kNoExpr || bits(n.dtype) < 8) return;
    const auto is_known = [&](const Variable& v) {
      return v.kind == Variable::Kind::kSymbol ||
             (v.kind == Variable::Kind::kAxis && std::ranges::find(plan_.outer, v.id) != plan_.outer.end());
    };
    if (std::ranges::all_of(variables_of(before_line(id)), is_known)) plan_.line_invariant_loads.push_back(id);
  }
  IndexExpr before_line(ExprId load) const {
    return simplify(position_of(graph_, pool_, load) - IndexExpr::axis(plan_.inner), pool_.bounds());
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  Dependences depends_;
  std::vector<std::vector<std::uint32_t>> loop_axes_;  // axes of the loops over a row
  std::vector<std::uint32_t> along_;                   // all of them
  IndexExpr length_ = 1, outer_ = 0;
  bool line_broadcasts_ = false;
  int widest_ = 8, narrowest_ = 64;
  StridedReduction plan_;
};

}  // namespace

std::optional<StridedReductionLayout> strided_reduction_layout(const RowForm& form, const Graph& graph, bool in_words) {
  return StridedReductionLayoutReader(form, graph).read(in_words);
}

}  // namespace fusec
