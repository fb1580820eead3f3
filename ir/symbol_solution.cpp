#include "ir/symbol_solution.h"

#include <algorithm>
#include <optional>

#include "ir/budget.h"

namespace fusec {
namespace {

struct LinearInSymbol {
  Dim coefficient = 0, rest = 0;
};

// e as coefficient * symbol + rest, without the symbol in either part; nothing if e has another form.
std::optional<LinearInSymbol> linear_in(const Dim& e, Variable symbol) {
  LinearInSymbol split;
  split.rest = e.constant_term();
  for (const IndexTerm& term : e.terms()) {
    count_step();
    const auto is_symbol = [&](const IndexAtomPtr& atom) {
      return atom->kind == IndexAtom::Kind::kVariable && atom->variable == symbol;
    };
    const IndexAtomPtr* const at = std::ranges::find_if(term.factors, is_symbol);
    const bool found = at != term.factors.end();
    Dim product = term.coefficient;
    for (const IndexAtomPtr& factor : term.factors)
      if (&factor != at) product *= from_terms({{1, {factor}}}, 0);
    if (mentions(product, symbol)) return std::nullopt;
    (found ? split.coefficient : split.rest) += product;
  }
  return split;
}

class Solver {
 public:
  explicit Solver(const Graph& graph) : graph_(graph), bounds_(graph.bounds()), solved_(graph.symbols.size(), false) {}

  SymbolSolution solve() {
    each_dimension([&](std::uint32_t input, std::uint32_t d, const Dim& dim) {
      if (const auto v = dim.as_variable(); v && !solved_[v->id]) take({v->id, input, d, 1, 0});
    });
    for (bool progress = true; progress;) {
      count_step();
      const std::size_t before = solution_.steps.size();
      each_dimension([&](std::uint32_t input, std::uint32_t d, const Dim& dim) { try_linear(input, d, dim); });
      progress = solution_.steps.size() > before;
    }
    for (std::uint32_t s = 0; s < solved_.size(); ++s)
      if (!solved_[s]) solution_.undetermined.push_back(s);
    return std::move(solution_);
  }

 private:
  template <class F>
  void each_dimension(const F& f) {
    if (solution_.steps.size() == solved_.size()) return;
    for (std::uint32_t i = 0; i < graph_.inputs.size(); ++i) {
      count_step();
      const Shape& shape = graph_.tensor(graph_.inputs[i]).shape;
      for (std::uint32_t d = 0; d < shape.size(); ++d)
        if (!shape[d].is_constant()) f(i, d, shape[d]);
    }
  }

  void try_linear(std::uint32_t input, std::uint32_t d, const Dim& dim) {
    std::optional<Variable> unknown;
    for (const Variable v : variables_of(dim)) {
      count_step();
      if (solved_[v.id]) continue;
      if (unknown) return;  // two unknowns
      unknown = v;
    }
    if (!unknown) return;
    const auto linear = linear_in(dim, *unknown);
    if (!linear) return;
    const Range range = range_of(linear->coefficient, bounds_);
    if (range.min <= 0 && range.max >= 0) return;
    take({unknown->id, input, d, linear->coefficient, linear->rest});
  }

  void take(SymbolStep step) {
    solved_[step.symbol] = true;
    solution_.steps.push_back(std::move(step));
  }

  const Graph& graph_;
  Bounds bounds_;
  std::vector<bool> solved_;
  SymbolSolution solution_;
};

}  // namespace

SymbolSolution solve_symbols(const Graph& graph) {
  return Solver(graph).solve();
}

}  // namespace fusec
