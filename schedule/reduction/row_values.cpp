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

std::map<ExprId, std::uint32_t> RowValues::in_loop(const std::vector<ExprId>& roots,
                                                   const std::vector<std::uint32_t>& axes,
                                                   const std::vector<std::uint32_t>& kind) {
  std::map<ExprId, std::uint32_t> numbers;
  std::vector<ExprId> needed = outside_reductions(form_, roots);
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

struct Loop {
  std::vector<std::uint32_t> axes;
  std::vector<ExprId> roots;
};

// In execution order.
std::vector<Loop> loops_over_row(const RowForm& form) {
  std::vector<Loop> loops;
  for (const ReductionLoop& loop : reduction_loops(form)) loops.push_back({loop.axes, loop.bodies(form.kernel.pool)});
  std::vector<ExprId> of_columns;
  for (const KernelOutput& output : form.kernel.outputs)
    if (!is_of_rows(form, output)) of_columns.push_back(output.expr);
  if (!of_columns.empty()) loops.push_back({form.columns, of_columns});
  return loops;
}

// The numbers of the nodes below a loop's roots, by the axes of the first loop of its kind.
std::map<ExprId, std::uint32_t> numbers_in(RowValues& values, const std::vector<Loop>& loops, const Loop& loop,
                                           const ExprPool& pool) {
  const Loop& kind = *std::ranges::find_if(loops, [&](const Loop& other) {
    return std::ranges::equal(other.axes, loop.axes, [&](auto x, auto y) { return pool.extent(x) == pool.extent(y); });
  });
  return values.in_loop(loop.roots, loop.axes, kind.axes);
}

}  // namespace

namespace {

// Calls `visit` for the values of an element in all loops: each value once, or once per loop if `recomputed`.
template <typename Visit>
void for_each_value(const RowForm& form, const Graph& graph, bool recomputed, Visit visit) {
  const ExprPool& pool = form.kernel.pool;
  const std::vector<Loop> loops = loops_over_row(form);
  RowValues values(form, graph);
  std::set<std::uint32_t> computed;
  for (const Loop& loop : loops)
    for (const auto& [id, number] : numbers_in(values, loops, loop, pool))
      if (values.runs_along(id, loop.axes) && (recomputed || computed.insert(number).second)) visit(pool[id]);
}

}  // namespace

int code_of_row(const RowForm& form, const Graph& graph, bool recomputed) {
  constexpr int kAccess = 2, kReduced = 2;  // in addition to the computation
  const std::vector<Loop> loops = loops_over_row(form);
  int code = kReduced * static_cast<int>(form.reductions.size());
  if (std::ranges::equal(loops.back().axes, form.columns))
    code += kAccess * static_cast<int>(loops.back().roots.size());
  for_each_value(form, graph, recomputed,
                 [&](const ExprNode& n) { code += instruction_count(n) + (n.op == ExprOp::kLoad ? kAccess : 0); });
  return code;
}

double functions_of_row(const RowForm& form, const Graph& graph) {
  double special = 0;
  for_each_value(form, graph, false, [&](const ExprNode& n) { special += operation_work(n).special; });
  return special;
}

bool is_position(const ExprPool& pool, ExprId id) {
  while (pool[id].op == ExprOp::kConvert) id = pool[id].args[0];
  return pool[id].op == ExprOp::kConstant || pool[id].op == ExprOp::kIndex;
}

int values_between_loops(const RowForm& form, const Graph& graph) {
  struct Span {
    std::size_t first, last;  // loops
  };
  const ExprPool& pool = form.kernel.pool;
  const std::vector<Loop> loops = loops_over_row(form);
  RowValues values(form, graph);
  std::map<std::uint32_t, Span> spans;
  for (std::size_t l = 0; l < loops.size(); ++l) {
    const std::map<ExprId, std::uint32_t> numbers = numbers_in(values, loops, loops[l], pool);
    const auto known = [&](ExprId id) {
      const auto at = spans.find(numbers.at(id));
      return at != spans.end() && at->second.first < l && !is_position(pool, id) &&
             pool[id].type != ScalarType::kBool && values.runs_along(id, loops[l].axes);
    };
    for (const ExprId id : outside_reductions(form, loops[l].roots, known)) {
      Span& span = spans.try_emplace(numbers.at(id), Span{l, l}).first->second;
      if (known(id)) span.last = l;
    }
  }
  int most = 0;
  for (std::size_t l = 0; l < loops.size(); ++l) {
    const auto is_kept = [l](const auto& span) { return span.second.first <= l && span.second.last > l; };
    most = std::max(most, static_cast<int>(std::ranges::count_if(spans, is_kept)));
  }
  return most;
}

}  // namespace fusec
