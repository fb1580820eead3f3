#include "codegen/schedules/row_pieces.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "analysis/axis_merging.h"
#include "analysis/loads.h"

namespace fusec {
namespace {

constexpr std::int64_t kMostQuotients = 6;
constexpr std::size_t kMostBreaks = 12;
constexpr int kMostLeaves = 32;
constexpr std::int64_t kShortRow = 32;  // elements
constexpr double kFewerPieces = 0.6;    // pieces of an element

std::size_t count_atoms(const IndexExpr& e) {
  std::size_t count = 0;
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors)
      if (factor->kind != IndexAtom::Kind::kVariable) count += 1 + count_atoms(factor->a) + count_atoms(factor->b);
  return count;
}

// What is divided, and compared, to find every element.
std::size_t count_atoms(const Kernel& kernel, const Graph& graph) {
  std::size_t count = 0;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad) count += count_atoms(position_of(graph, kernel.pool, id));
    if (n.op == ExprOp::kIndex) count += count_atoms(n.indices[0]);
  }
  return count;
}

// Neighbouring axes as one wherever that divides nothing that was not divided before.
Kernel merge_undivided(const Kernel& kernel, const Graph& graph) {
  Kernel merged = drop_unit_axes(kernel);
  const std::size_t atoms = count_atoms(merged, graph);
  for (std::size_t i = merged.outputs[0].axes.size(); i-- > 1;) {
    if (range_of(merged.pool.extent(merged.outputs[0].axes[i]), merged.pool.bounds()).min < 1) continue;
    Kernel candidate = merge_pair(merged, i - 1);
    if (count_atoms(candidate, graph) <= atoms) merged = std::move(candidate);
  }
  return merged;
}

bool is_choice(const IndexAtom& atom) {
  return atom.kind == IndexAtom::Kind::kMin || atom.kind == IndexAtom::Kind::kMax;
}

// A minimum or maximum along the column within `e`, or a quotient or remainder: an innermost one.
IndexAtomPtr atom_along(const IndexExpr& e, Variable column, bool choice) {
  for (const IndexTerm& term : e.terms())
    for (const IndexAtomPtr& factor : term.factors) {
      if (factor->kind == IndexAtom::Kind::kVariable) continue;
      if (!mentions(factor->a, column) && !mentions(factor->b, column)) continue;
      for (const IndexExpr* inside : {&factor->a, &factor->b})
        if (IndexAtomPtr found = atom_along(*inside, column, choice)) return found;
      if (is_choice(*factor) == choice) return factor;
    }
  return nullptr;
}

IndexExpr replaced(const IndexExpr& e, const IndexAtom& atom, const IndexExpr& by) {
  return rewrite_atoms(e, [&](IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) {
    return kind == atom.kind && a == atom.a && b == atom.b ? by : combine(kind, a, b);
  });
}

// Finds the columns at which anything changes that an element's value or place is made of.
class BreakFinder {
 public:
  BreakFinder(const Kernel& kernel, std::uint32_t column)
      : pool_(kernel.pool), column_{Variable::Kind::kAxis, column}, length_(kernel.pool.extent(column)) {}

  std::vector<IndexExpr> breaks;

  bool read(ExprId value) {
    const ExprNode& n = pool_[value];
    switch (n.op) {
      case ExprOp::kSelect:
        return read_condition(n.args[0]) && read(n.args[1]) && read(n.args[2]);
      case ExprOp::kConstant:
        return ++leaves_ <= kMostLeaves;
      case ExprOp::kLoad:
        if (++leaves_ > kMostLeaves) return false;
        if (!values_in(n).empty() || (n.args[0] != kNoExpr && !read_condition(n.args[0]))) return false;
        return std::ranges::all_of(n.indices, [&](const IndexExpr& e) { return read_index(e); });
      default:
        return false;
    }
  }

 private:
  bool read_condition(ExprId condition) {
    const ExprNode& n = pool_[condition];
    const auto difference = [&](int least) {
      IndexExpr sides[2];
      for (int i = 0; i < 2; ++i) {
        const ExprNode& side = pool_[n.args[i]];
        if (side.op == ExprOp::kConstant) {
          sides[i] = side.integer;
          continue;
        }
        if (side.op != ExprOp::kIndex || !has_no_values(side.indices[0]) || !read_index(side.indices[0])) return false;
        sides[i] = side.indices[0];
      }
      return read_sign(sides[0] - sides[1] - least);
    };
    switch (n.op) {
      case ExprOp::kConstant:
        return true;
      case ExprOp::kNot:
        return read_condition(n.args[0]);
      case ExprOp::kAnd:
      case ExprOp::kOr:
        return read_condition(n.args[0]) && read_condition(n.args[1]);
      case ExprOp::kLt:
      case ExprOp::kGe:
        return difference(0);
      case ExprOp::kLe:
      case ExprOp::kGt:
        return difference(1);
      default:
        return false;
    }
  }

  bool has_no_values(const IndexExpr& e) const {
    return std::ranges::none_of(variables_of(e), [](Variable v) { return v.kind == Variable::Kind::kValue; });
  }

  // All that is divided or compared in it.
  bool read_index(const IndexExpr& e) {
    for (const IndexTerm& term : e.terms())
      for (const IndexAtomPtr& factor : term.factors) {
        if (factor->kind == IndexAtom::Kind::kVariable) continue;
        if (!mentions(factor->a, column_) && !mentions(factor->b, column_)) continue;
        if (!read_index(factor->a) || !read_index(factor->b) || !read_atom(*factor)) return false;
      }
    return true;
  }

  bool read_atom(const IndexAtom& atom) {
    if (is_choice(atom)) return read_sign(atom.a - atom.b);
    // Many of them mean nothing where they become one number with remainders again; what is left of them is no line.
    const auto quotients = quotients_of(atom);
    if (!quotients) return true;
    for (std::int64_t q = quotients->min + 1; q <= quotients->max; ++q)
      if (!read_sign(atom.a - atom.b * q)) return false;
    return true;
  }

  // Few of them.
  std::optional<Range> quotients_of(const IndexAtom& atom) const {
    if (mentions(atom.b, column_)) return std::nullopt;
    const Bounds& bounds = pool_.bounds();
    if (!atom.b.is_constant())
      for (const std::int64_t low : {0, -1})
        for (const std::int64_t high : {0, 1})
          if (proves_nonnegative(atom.a - atom.b * low, bounds) && proves_less(atom.a, atom.b * (high + 1), bounds))
            return Range{low, high};
    const Range range = range_of(simplify(floor_div(atom.a, atom.b), bounds), bounds);
    if (range.min < -kMostQuotients || range.max > kMostQuotients) return std::nullopt;
    return range;
  }

  // Where it becomes negative or ceases to be: in each of the linear pieces that it is made of.
  bool read_sign(const IndexExpr& difference) {
    const IndexExpr e = simplify(difference, pool_.bounds());
    if (!mentions(e, column_)) return true;
    if (const Range range = range_of(e, pool_.bounds()); range.min >= 0 || range.max < 0) return true;
    // Of minima and maxima first: in what is left, quotients stand in sums.
    for (const bool choice : {true, false})
      if (const IndexAtomPtr atom = atom_along(e, column_, choice)) return read_signs_without(e, *atom);
    const auto step = coefficient_of(e, column_);
    if (!step || *step == 0) return false;
    const IndexExpr rest = e - IndexExpr::variable(column_) * *step;
    for (const Variable v : variables_of(rest))
      if (v.kind != Variable::Kind::kSymbol) return false;
    return add(*step > 0 ? ceil_div(-rest, *step) : floor_div(rest, -*step) + 1);
  }

  bool read_signs_without(const IndexExpr& e, const IndexAtom& atom) {
    using Kind = IndexAtom::Kind;
    if (is_choice(atom)) return read_sign(replaced(e, atom, atom.a)) && read_sign(replaced(e, atom, atom.b));
    const auto quotients = quotients_of(atom);
    if (!quotients) return atom.kind == Kind::kFloorDiv && read_sign_of_quotient(e, atom);
    for (std::int64_t q = quotients->min; q <= quotients->max; ++q)
      if (!read_sign(replaced(e, atom, atom.kind == Kind::kMod ? atom.a - atom.b * q : IndexExpr(q)))) return false;
    return true;
  }

  // 4 - 2 (a // b) is negative from where on a is 3 b.
  bool read_sign_of_quotient(const IndexExpr& e, const IndexAtom& atom) {
    const IndexExpr none = replaced(e, atom, 0), times = replaced(e, atom, 1) - none;
    const auto step = times.as_constant(), rest = none.as_constant(), divisor = atom.b.as_constant();
    if (!step || *step == 0 || !rest || !divisor || *divisor < 1) return false;
    const IndexExpr least = *step > 0 ? ceil_div(-*rest, *step) : floor_div(*rest, -*step) + 1;
    return read_sign(atom.a - least * *divisor);
  }

  bool add(const IndexExpr& column) {
    const IndexExpr at = simplify(column, pool_.bounds());
    if (proves_nonnegative(-at, pool_.bounds()) || proves_nonnegative(at - length_, pool_.bounds())) return true;
    if (std::ranges::find(breaks, at) == breaks.end()) breaks.push_back(at);
    return breaks.size() <= kMostBreaks;
  }

  const ExprPool& pool_;
  const Variable column_;
  const IndexExpr& length_;
  int leaves_ = 0;
};

// In the order in which they are, whatever the symbols.
bool sort_breaks(std::vector<IndexExpr>& breaks, const Bounds& bounds) {
  for (std::size_t i = 1; i < breaks.size(); ++i)
    for (std::size_t j = i; j > 0 && !proves_nonnegative(breaks[j] - breaks[j - 1], bounds); --j) {
      if (!proves_nonnegative(breaks[j - 1] - breaks[j], bounds)) return false;
      std::swap(breaks[j - 1], breaks[j]);
    }
  return true;
}

// An index expression within a piece, as one of the column's distance from its first.
struct InPiece {
  Bounds bounds;
  IndexExpr distance;

  InPiece(const RowPieces& rows, const RowPiece& piece) : bounds(rows.kernel.pool.bounds()) {
    distance = IndexExpr::axis(static_cast<std::uint32_t>(bounds.axes.size()));
    bounds.axes.push_back(piece.end - piece.begin);
    column = {Variable::Kind::kAxis, rows.column};
    begin = piece.begin;
  }
  IndexExpr of(const IndexExpr& e) const {
    const IndexExpr here = simplify(substitute(e,
                                               [&](Variable v) -> std::optional<IndexExpr> {
                                                 if (v != column) return std::nullopt;
                                                 return begin + distance;
                                               }),
                                    bounds);
    return simplify(
        rewrite_atoms(here, [&](IndexAtom::Kind kind, const IndexExpr& a,
                                const IndexExpr& b) { return rolled(kind, a, b).value_or(combine(kind, a, b)); }),
        bounds);
  }
  // (i - 3) % n is i - 3 + n where i is below 3.
  std::optional<IndexExpr> rolled(IndexAtom::Kind kind, const IndexExpr& a, const IndexExpr& b) const {
    if (kind != IndexAtom::Kind::kMod && kind != IndexAtom::Kind::kFloorDiv) return std::nullopt;
    if (b.is_constant() || !proves_nonnegative(a + b, bounds) || !proves_nonnegative(-a - 1, bounds))
      return std::nullopt;
    return kind == IndexAtom::Kind::kMod ? a + b : IndexExpr(-1);
  }

  Variable column{};
  IndexExpr begin;
};

std::optional<bool> known_in(const InPiece& piece, const ExprPool& pool, ExprId condition) {
  const ExprNode& n = pool[condition];
  const auto known = [&](std::size_t i) { return known_in(piece, pool, n.args[i]); };
  const auto less = [&](int least) -> std::optional<bool> {
    const auto side = [&](std::size_t i) {
      const ExprNode& s = pool[n.args[i]];
      return s.op == ExprOp::kConstant ? IndexExpr(s.integer) : s.indices[0];
    };
    const IndexExpr difference = piece.of(side(0) - side(1) - least);
    if (proves_nonnegative(-difference - 1, piece.bounds)) return true;
    if (proves_nonnegative(difference, piece.bounds)) return false;
    return std::nullopt;
  };
  const auto negated = [](std::optional<bool> b) { return b ? std::optional<bool>(!*b) : b; };
  switch (n.op) {
    case ExprOp::kConstant:
      return n.integer != 0;
    case ExprOp::kNot:
      return negated(known(0));
    case ExprOp::kAnd:
    case ExprOp::kOr: {
      const bool decides = n.op == ExprOp::kOr;
      const auto a = known(0), b = known(1);
      if ((a && *a == decides) || (b && *b == decides)) return decides;
      return a && b ? std::optional<bool>(!decides) : std::nullopt;
    }
    case ExprOp::kLt:
      return less(0);
    case ExprOp::kLe:
      return less(1);
    case ExprOp::kGe:
      return negated(less(0));
    case ExprOp::kGt:
      return negated(less(1));
    default:
      return std::nullopt;
  }
}

// Is it the same for all columns of the piece?
bool is_of_row(const InPiece& piece, const ExprPool& pool, ExprId condition) {
  if (known_in(piece, pool, condition)) return true;
  const ExprNode& n = pool[condition];
  if (n.op == ExprOp::kIndex) return !mentions(piece.of(n.indices[0]), *piece.distance.as_variable());
  return std::ranges::all_of(n.args, [&](ExprId arg) { return arg == kNoExpr || is_of_row(piece, pool, arg); });
}

// Sets what says how far rows lie apart, where that is as far everywhere.
void read_distance(const RowPieces& rows, const Graph& graph, RowPiece& piece) {
  if (rows.rows.size() > 1) return;
  const IndexExpr place = place_in_piece(rows, piece, graph, piece.leaves[0]);
  const auto in_row = [&](int row) {
    return substitute(place, [&](Variable v) -> std::optional<IndexExpr> {
      if (v.kind != Variable::Kind::kAxis) return std::nullopt;
      return IndexExpr(row);
    });
  };
  // Of a single row, one further would begin where it ends.
  const IndexExpr apart = rows.rows.empty() ? piece.end - piece.begin : in_row(1) - in_row(0);
  const IndexExpr row = rows.rows.empty() ? IndexExpr(0) : IndexExpr::axis(rows.rows[0]);
  if (place != simplify(row * apart + in_row(0), rows.kernel.pool.bounds())) return;
  piece.line = piece.leaves[0];
  piece.apart = apart;
}

// Finds what a piece is chosen from; false where its elements do not follow one another: `places` are theirs.
bool read_piece(const RowPieces& rows, const Graph& graph, RowPiece& piece, std::vector<IndexExpr>& places) {
  const InPiece in(rows, piece);
  const ExprPool& pool = rows.kernel.pool;
  bool zero = false;
  std::optional<std::int64_t> step;
  const std::function<bool(ExprId)> read = [&](ExprId value) {
    const ExprNode& n = pool[value];
    if (n.op == ExprOp::kSelect) {
      const auto holds = known_in(in, pool, n.args[0]);
      return is_of_row(in, pool, n.args[0]) && (holds == false || read(n.args[1])) &&
             (holds == true || read(n.args[2]));
    }
    if (std::ranges::find(piece.leaves, value) != piece.leaves.end()) return true;
    if (n.op == ExprOp::kLoad) {
      const auto holds = n.args[0] == kNoExpr ? std::optional<bool>(true) : known_in(in, pool, n.args[0]);
      if (n.args[0] != kNoExpr && !is_of_row(in, pool, n.args[0])) return false;
      zero = zero || holds != true;
      if (holds == false) return true;
      places.push_back(in.of(position_of(graph, pool, value)));
      const auto along = coefficient_of(places.back(), *in.distance.as_variable());
      if (!along || *along < -1 || *along > 1 || (step && *step != *along)) return false;
      step = along;
    }
    piece.leaves.push_back(value);
    return true;
  };
  if (!read(rows.kernel.outputs[0].expr)) return false;
  piece.constant = !step && piece.leaves.size() + zero == 1;
  if (step && piece.leaves.size() == 1 && !zero) read_distance(rows, graph, piece);
  piece.step = proves_equal(piece.end - piece.begin, 1, in.bounds) || !step ? 1 : static_cast<int>(*step);
  return true;
}

// The columns within a piece at which quotients in `places` change, few of them.
std::vector<IndexExpr> quotients_in(const RowPieces& rows, const RowPiece& piece,
                                    const std::vector<IndexExpr>& places) {
  const InPiece in(rows, piece);
  const Variable distance = *in.distance.as_variable();
  std::vector<IndexExpr> columns;
  for (const IndexExpr& place : places) {
    const IndexAtomPtr atom = atom_along(place, distance, false);
    if (!atom) continue;
    const auto divisor = atom->b.as_constant();
    const IndexExpr rest = atom->a - in.distance;
    if (!divisor || *divisor < 1 || !rest.is_constant()) continue;
    const Range range = range_of(simplify(floor_div(atom->a, *divisor), in.bounds), in.bounds);
    if (range.max - range.min > kMostQuotients) continue;
    for (std::int64_t q = range.min + 1; q <= range.max; ++q) {
      const IndexExpr column = simplify(piece.begin + *divisor * q - rest, in.bounds);
      if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    }
  }
  return columns;
}

// From column to column, pieces that are none again where quotients in them change; false where that is of no use.
bool read_pieces(RowPieces& rows, const Graph& graph, const std::vector<IndexExpr>& ends) {
  IndexExpr begin = 0;
  for (const IndexExpr& end : ends) {
    std::vector<IndexExpr> places;
    RowPiece whole{.begin = begin, .end = end};
    if (read_piece(rows, graph, whole, places)) {
      rows.pieces.push_back(std::move(whole));
    } else {
      std::vector<IndexExpr> parts = quotients_in(rows, whole, places);
      if (parts.empty() || !sort_breaks(parts, rows.kernel.pool.bounds())) return false;
      parts.push_back(end);
      for (const IndexExpr& part : parts) {
        rows.pieces.push_back({.begin = begin, .end = part});
        if (!read_piece(rows, graph, rows.pieces.back(), places)) return false;
        begin = part;
      }
    }
    begin = end;
  }
  return rows.pieces.size() <= kMostBreaks;
}

std::optional<RowPieces> pieces_of(Kernel kernel, const Graph& graph) {
  RowPieces rows;
  rows.kernel = std::move(kernel);
  const ExprPool& pool = rows.kernel.pool;
  const KernelOutput& output = rows.kernel.outputs[0];
  if (output.axes.empty()) return std::nullopt;
  rows.column = output.axes.back();
  rows.rows.assign(output.axes.begin(), output.axes.end() - 1);
  rows.length = pool.extent(rows.column);
  rows.row_count = point_count(pool, rows.rows);
  BreakFinder finder(rows.kernel, rows.column);
  if (range_of(rows.length, pool.bounds()).min < 1 || !finder.read(output.expr)) return std::nullopt;
  if (!sort_breaks(finder.breaks, pool.bounds())) return std::nullopt;
  finder.breaks.push_back(rows.length);
  if (!read_pieces(rows, graph, finder.breaks)) return std::nullopt;
  return rows;
}

}  // namespace

std::optional<RowPieces> pieces_of_rows(const Kernel& kernel, const Graph& graph) {
  Kernel by_axes = drop_unit_axes(kernel);
  const auto length = [&](const RowPieces& rows) { return value_at_hint(rows.length, graph.symbols); };
  // How many pieces there are of an element.
  const auto density = [&](const RowPieces& rows) {
    return static_cast<double>(rows.pieces.size()) / static_cast<double>(std::max<std::int64_t>(1, length(rows)));
  };
  auto rows = pieces_of(merge_undivided(by_axes, graph), graph);
  // Rows are one with what is around them where that is cut at few columns as well: colours of pixels.
  while (by_axes.outputs[0].axes.size() > 1) {
    const std::vector<std::uint32_t>& axes = by_axes.outputs[0].axes;
    if (range_of(by_axes.pool.extent(axes.back()), by_axes.pool.bounds()).min < 1) break;
    by_axes = merge_pair(by_axes, axes.size() - 2);
    auto longer = pieces_of(merge_undivided(by_axes, graph), graph);
    if (longer && (!rows || density(*longer) < kFewerPieces * density(*rows)))
      rows = std::move(longer);
    else if (!longer && rows && length(*rows) >= kShortRow)
      break;
  }
  return rows;
}

std::optional<bool> known_in_piece(const RowPieces& rows, const RowPiece& piece, ExprId condition) {
  return known_in(InPiece(rows, piece), rows.kernel.pool, condition);
}

IndexExpr place_in_piece(const RowPieces& rows, const RowPiece& piece, const Graph& graph, ExprId load) {
  const InPiece in(rows, piece);
  return simplify(substitute(in.of(position_of(graph, rows.kernel.pool, load)),
                             [&](Variable v) -> std::optional<IndexExpr> {
                               if (v != *in.distance.as_variable()) return std::nullopt;
                               return IndexExpr(0);
                             }),
                  rows.kernel.pool.bounds());
}

}  // namespace fusec
