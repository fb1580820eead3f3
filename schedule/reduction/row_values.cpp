#include "schedule/reduction/row_values.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/kernel/operation_work.h"

namespace fusec {

RowValues::RowValues(const RowForm& form, const Graph& graph)
    : form_(form), graph_(graph), pool_(form.kernel.pool), depends_(dependences(pool_)) {}

bool RowValues::runs_along(ExprId id, const std::vector<std::uint32_t>& axes) const {
  return std::ranges::any_of(axes, [&](std::uint32_t a) { return std::ranges::binary_search(depends_[id], a); });
}

std::map<ExprId, std::uint32_t> RowValues::in_loop(const RowLoop& loop, const std::vector<RowLoop>& loops) {
  const std::vector<std::uint32_t>& axes = loop.axes;
  const std::vector<std::uint32_t>& kind =
      std::ranges::find_if(loops, [&](const RowLoop& other) {
        return other.width == loop.width && std::ranges::equal(
                                                other.axes, axes, {}, [&](auto a) { return pool_.extent(a); },
                                                [&](auto a) { return pool_.extent(a); });
      })->axes;
  std::map<ExprId, std::uint32_t> numbers;
  std::vector<ExprId> needed = outside_reductions(form_, loop.roots);
  std::ranges::sort(needed);  // operands have smaller ids
  for (const ExprId id : needed) {
    const ExprNode& n = pool_[id];
    std::string text = "=" + std::to_string(id);  // loop-invariant values are their own key
    if (runs_along(id, axes) && n.op != ExprOp::kReduce) {
      text = std::to_string(static_cast<int>(n.op)) + "." + std::to_string(static_cast<int>(n.type)) + "." +
             std::to_string(static_cast<int>(n.dtype)) + "." + std::to_string(n.source) + "(";
      for (const ExprId a : n.args) text += a == kNoExpr ? "-," : std::to_string(numbers.at(a)) + ",";
      // A load's key is its position in memory, whatever its indices are.
      std::vector<IndexExpr> indices = n.indices;
      if (n.op == ExprOp::kLoad) indices = {flat_index(graph_.tensor(n.source).shape, n.indices)};
      // Axes are renamed to those of the first such loop, because the order of terms depends on the names.
      for (IndexExpr& e : indices)
        e = simplify(substitute(e,
                                [&](Variable v) -> std::optional<IndexExpr> {
                                  const auto at = std::ranges::find(axes, v.id);
                                  if (v.kind != Variable::Kind::kAxis || at == axes.end()) return std::nullopt;
                                  return IndexExpr::axis(kind[static_cast<std::size_t>(at - axes.begin())]);
                                }),
                     pool_.bounds());
      for (const IndexExpr& e : indices)
        text += to_string(e,
                          [&](Variable v) {
                            if (v.kind == Variable::Kind::kSymbol) return "s" + std::to_string(v.id);
                            if (v.kind == Variable::Kind::kValue) return "v" + std::to_string(numbers.at(v.id));
                            return "a" + std::to_string(v.id);
                          }) +
                ",";
    }
    numbers[id] = numbers_.try_emplace(text, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  return numbers;
}

namespace {

// Calls `visit` for the values of an element in all loops: each value once, or once per loop if `recomputed`.
template <typename Visit>
void for_each_value(const RowForm& form, const Graph& graph, bool recomputed, Visit visit) {
  const ExprPool& pool = form.kernel.pool;
  const std::vector<RowLoop> loops = loops_over_row(form);
  RowValues values(form, graph);
  std::set<std::uint32_t> computed;
  for (const RowLoop& loop : loops)
    for (const auto& [id, number] : values.in_loop(loop, loops))
      if (values.runs_along(id, loop.axes) && (recomputed || computed.insert(number).second)) visit(pool[id]);
}

}  // namespace

int code_of_row(const RowForm& form, const Graph& graph, bool recomputed) {
  constexpr int kAccess = 2, kReduced = 2;  // in addition to the computation
  const std::vector<RowLoop> loops = loops_over_row(form);
  int code = kReduced * static_cast<int>(form.reductions.size());
  if (std::ranges::equal(loops.back().axes, form.columns))
    code += kAccess * static_cast<int>(loops.back().roots.size());
  for_each_value(form, graph, recomputed,
                 [&](const ExprNode& n) { code += instruction_count(n) + (n.op == ExprOp::kLoad ? kAccess : 0); });
  return code;
}

double functions_of_row(const RowForm& form, const Graph& graph, bool recomputed) {
  double special = 0;
  for_each_value(form, graph, recomputed, [&](const ExprNode& n) { special += operation_work(n).special; });
  return special;
}

bool is_position(const ExprPool& pool, ExprId id) {
  while (pool[id].op == ExprOp::kConvert) id = pool[id].args[0];
  return pool[id].op == ExprOp::kConstant || pool[id].op == ExprOp::kIndex;
}

RowValueSpans spans_of_values(RowValues& values, const std::vector<RowLoop>& loops,
                              const std::vector<int>& iterations) {
  const ExprPool& pool = values.form().kernel.pool;
  RowValueSpans found{.computed = std::vector<std::map<ExprId, std::uint32_t>>(loops.size()), .spans = {}};
  for (std::size_t l = 0; l < loops.size(); ++l) {
    if (iterations[l] == 0) continue;
    const std::map<ExprId, std::uint32_t> numbers = values.in_loop(loops[l], loops);
    const auto known = [&](ExprId id) {
      const auto at = found.spans.find(numbers.at(id));
      return at != found.spans.end() && at->second.first < l && !is_position(pool, id) &&
             pool[id].type != ScalarType::kBool && values.runs_along(id, loops[l].axes);
    };
    for (const ExprId id : outside_reductions(values.form(), loops[l].roots, known)) {
      const std::uint32_t number = found.computed[l][id] = numbers.at(id);
      RowValueSpans::Span& span = found.spans.try_emplace(number, RowValueSpans::Span{l, l}).first->second;
      if (known(id)) span.last = l;
    }
  }
  return found;
}

int values_between_loops(const RowForm& form, const Graph& graph) {
  const std::vector<RowLoop> loops = loops_over_row(form);
  RowValues values(form, graph);
  const RowValueSpans found = spans_of_values(values, loops, std::vector<int>(loops.size(), 1));
  std::ptrdiff_t most = 0;
  for (std::size_t l = 0; l < loops.size(); ++l)
    most = std::max(most,
                    std::ranges::count_if(found.spans, [l](const auto& span) { return span.second.is_kept_after(l); }));
  return static_cast<int>(most);
}

}  // namespace fusec
