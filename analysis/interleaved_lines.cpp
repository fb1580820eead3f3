#include "analysis/interleaved_lines.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/kernel_forms.h"
#include "analysis/outputs_beside.h"
#include "analysis/target.h"
#include "ir/type.h"

namespace fusec {
namespace {

constexpr int kMostRowsInTurn = 512;         // that take turns where a line could not be strips
constexpr std::int64_t kMostOfPiece = 8192;  // elements of a row in a line

// Reads the form: which loads and stores are of elements as they follow one another.
class InterleavedLinesReader {
 public:
  InterleavedLinesReader(const RowForm& form, const Graph& graph)
      : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

  std::optional<InterleavedLines> read() {
    return see_all() && choose_vectors() ? std::optional(lines()) : std::nullopt;
  }

  std::optional<InterleavedLines> read_in_pieces() {
    if (!see_all() || way_.breadth > 1) return std::nullopt;
    way_.width = elements_of_vector(widest_);
    while (way_.width > 1 && !proves_multiple_of(way_.line, way_.width, pool_.bounds())) way_.width /= 2;
    if (way_.width * narrowest_ % 32 != 0) return std::nullopt;
    way_.in_strips = true;
    way_.apart = apart_;
    return lines();
  }

 private:
  InterleavedLines lines() {
    way_.form = form_;
    return {.way = std::move(way_),
            .widest_bits = widest_,
            .narrowest_bits = narrowest_,
            .may_be_shifted = may_be_shifted()};
  }

  // False where some load or store is of other elements than those that follow one another.
  bool see_all() {
    if (!find_axes() || way_.line.is(0)) return false;  // rows of no elements are left to others
    for (const ExprId id : reachable(pool_, all_roots()))
      if (!see(id)) return false;
    if (way_.loads.empty()) return false;
    for (const KernelOutput& output : form_.kernel.outputs) {
      const std::size_t lacking = columns_without(form_, output).size();
      if (form_.columns.empty() || lacking == form_.columns.size()) continue;
      if (lacking != 0 || !is_stored_along(output, form_.columns)) return false;
    }
    for (const KernelOutput& output : form_.beside)
      if (!is_stored_along(output, reduction_loops(form_).front().axes)) return false;
    return true;
  }

  bool choose_vectors() {
    way_.width = elements_of_vector(widest_);
    if (way_.width * narrowest_ % 32 != 0) return false;
    if (way_.breadth > 1) return !has_pieces_of_sectors() && choose_pieces();
    const auto rows = way_.line.as_constant();
    way_.in_strips =
        !(rows && *rows <= kFewRows) && way_.width > 1 && proves_multiple_of(way_.line, way_.width, pool_.bounds());
    if (!way_.in_strips && (apart_ || !rows || *rows > kMostRowsInTurn)) {
      if (!may_be_shifted()) return false;
      way_.in_strips = way_.shifted = true;
    }
    if (!way_.in_strips) way_.rows = static_cast<int>(*rows);
    way_.apart = apart_;
    return true;
  }
  bool may_be_shifted() const { return !apart_ && way_.width > 1 && form_.beside.empty() && way_.line.as_constant(); }

  // Rows of whole sectors in each line are as well taken one by one.
  bool has_pieces_of_sectors() const { return way_.breadth * narrowest_ % (8 * kSectorBytes) == 0; }

  bool choose_pieces() {
    if (way_.width == 1 || apart_) return false;
    const auto line = way_.line.as_constant();
    way_.in_strips = proves_multiple_of(way_.line, way_.width, pool_.bounds());
    if (!way_.in_strips && (!line || *line > kMostRowsInTurn || !way_.outer.empty())) return false;
    if (!way_.in_strips) way_.rows = static_cast<int>(*line) / way_.breadth;
    return true;
  }

  bool find_axes() {
    if (form_.rows.empty()) return false;
    if (!form_.columns.empty()) walks_.push_back(form_.columns);
    for (const ExprId r : form_.reductions) walks_.push_back(pool_[r].axes);
    const auto extents_of = [&](const std::vector<std::uint32_t>& axes) {
      std::vector<IndexExpr> extents;
      for (const std::uint32_t a : axes) extents.push_back(pool_.extent(a));
      return extents;
    };
    const std::vector<IndexExpr> extents = extents_of(walks_[0]);
    if (std::ranges::any_of(walks_, [&](const auto& axes) { return extents_of(axes) != extents; })) return false;
    const auto breadth = extents.size() == 2 ? extents[1].as_constant() : 1;
    if (extents.size() > 2 || !breadth || *breadth > kMostOfPiece) return false;
    length_ = extents[0];
    way_.breadth = static_cast<int>(*breadth);
    for (const auto& axes : walks_) along_.insert(along_.end(), axes.begin(), axes.end());
    std::ranges::sort(along_);
    for (const std::uint32_t a : form_.rows) {  // the first load says which is the inner one
      if (range_of(pool_.extent(a), pool_.bounds()).min < 2 || !is_innermost(a)) continue;
      way_.inner = a;
      way_.line = pool_.extent(a) * way_.breadth;
      for (const std::uint32_t other : form_.rows)
        if (other != a) {
          way_.outer.push_back(other);
          outer_ = outer_ * pool_.extent(other) + IndexExpr::axis(other);
        }
      return true;
    }
    return false;
  }

  std::vector<ExprId> all_roots() const {
    std::vector<ExprId> roots = roots_of(form_.kernel);
    std::ranges::copy(roots_beside(form_), std::back_inserter(roots));
    return roots;
  }

  IndexExpr position(const KernelOutput& output) const {
    return simplify(flat_index(output.type.shape, output.index), pool_.bounds());
  }

  // The output's elements follow one another in this walk.
  bool is_stored_along(const KernelOutput& output, const std::vector<std::uint32_t>& walk) {
    see_width(output.type.dtype);
    return bits(output.type.dtype) >= 8 && follows(position(output), walk);
  }

  IndexExpr position(const ExprNode& load) const {
    return simplify(flat_index(graph_.tensor(load.source).shape, load.indices), pool_.bounds());
  }
  bool runs_along(ExprId id) const {
    return std::ranges::any_of(along_, [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); });
  }

  bool is_innermost(std::uint32_t axis) const {
    for (const ExprId id : reachable(pool_, all_roots()))
      if (pool_[id].op == ExprOp::kLoad && runs_along(id) && std::ranges::binary_search(depends_[id], axis))
        return coefficient_of(position(pool_[id]), {Variable::Kind::kAxis, axis}) == way_.breadth;
    return false;
  }

  bool follows(const IndexExpr& at, const std::vector<std::uint32_t>& walk) const {
    const IndexExpr row = IndexExpr::axis(way_.inner) * way_.breadth;
    IndexExpr place = (outer_ * length_ + IndexExpr::axis(walk[0])) * way_.line + row;
    if (walk.size() > 1) place += IndexExpr::axis(walk[1]);
    return simplify(at - place, pool_.bounds()).is(0);
  }

  // The same for all lines, of rows that have several elements of each: what one of a row's columns is weighted by.
  bool is_of_columns(ExprId id) const {
    if (way_.breadth == 1) return false;
    const auto runs = [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); };
    return std::ranges::none_of(walks_, [&](const auto& walk) { return runs(walk[0]); }) &&
           std::ranges::none_of(way_.outer, runs);
  }

  // Where an element is in its line.
  IndexExpr column_of(ExprId load) const {
    IndexExpr column = IndexExpr::axis(way_.inner) * way_.breadth;
    for (const auto& walk : walks_)
      if (std::ranges::binary_search(depends_[load], walk[1])) return column + IndexExpr::axis(walk[1]);
    return column;
  }

  void see_width(DType dtype) {
    widest_ = std::max(widest_, bits(dtype));
    narrowest_ = std::min(narrowest_, bits(dtype));
  }

  bool see(ExprId id) {
    const ExprNode& n = pool_[id];
    if (n.op == ExprOp::kReduce && std::ranges::find(form_.reductions, id) == form_.reductions.end()) return false;
    if (n.op == ExprOp::kLoad && !runs_along(id)) see_beside(id);
    if (n.op != ExprOp::kLoad || !runs_along(id)) return true;
    if (n.args[0] != kNoExpr || bits(n.dtype) < 8) return false;
    const IndexExpr at = position(n);
    if (is_of_columns(id)) {
      if (simplify(at - column_of(id), pool_.bounds()).is(0)) way_.beside.push_back(id);
      return true;
    }
    if (std::ranges::none_of(walks_, [&](const auto& walk) { return follows(at, walk); })) {
      apart_ = true;  // the same for all of a line: an element for several lanes
      return !std::ranges::binary_search(depends_[id], way_.inner);
    }
    see_width(n.dtype);
    way_.loads.push_back(id);
    return true;
  }

  // What single elements of lines are weighted by, one after the other, wherever that begins.
  void see_beside(ExprId id) {
    const ExprNode& n = pool_[id];
    if (way_.breadth > 1 || n.args[0] != kNoExpr || bits(n.dtype) < 8) return;
    const auto is_known = [&](const Variable& v) {
      return v.kind == Variable::Kind::kSymbol ||
             (v.kind == Variable::Kind::kAxis && std::ranges::find(way_.outer, v.id) != way_.outer.end());
    };
    if (std::ranges::all_of(variables_of(before_line(n)), is_known)) way_.beside.push_back(id);
  }
  IndexExpr before_line(const ExprNode& load) const {
    return simplify(position(load) - IndexExpr::axis(way_.inner), pool_.bounds());
  }

  const RowForm& form_;
  const Graph& graph_;
  const ExprPool& pool_;
  std::vector<std::vector<std::uint32_t>> depends_;
  std::vector<std::vector<std::uint32_t>> walks_;  // axes of the loops over a row
  std::vector<std::uint32_t> along_;               // all of them
  IndexExpr length_ = 1, outer_ = 0;
  bool apart_ = false;
  int widest_ = 8, narrowest_ = 64;
  InterleavedRows way_;
};

}  // namespace

std::optional<InterleavedLines> interleaved_lines(const RowForm& form, const Graph& graph) {
  return InterleavedLinesReader(form, graph).read();
}

std::optional<InterleavedLines> lines_in_pieces(const RowForm& form, const Graph& graph) {
  return InterleavedLinesReader(form, graph).read_in_pieces();
}

}  // namespace fusec
