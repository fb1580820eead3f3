#include "ir/symbol_values.h"

#include <fmt/format.h>

#include <stdexcept>

#include "ir/error.h"
#include "ir/symbol_solution.h"

namespace fusec {
std::vector<std::int64_t> symbol_values(
    const Graph& graph, const std::function<std::int64_t(std::size_t input, std::size_t dimension)>& extent) {
  std::vector<std::int64_t> values;
  for (const Symbol& symbol : graph.symbols) values.push_back(symbol.hint);
  auto value_of = [&](Variable v) { return values.at(v.id); };
  auto complain = [&](std::size_t input, std::size_t dimension, const std::string& expected) {
    const std::string& input_name = graph.value(graph.inputs[input]).name;
    throw Error(ErrorKind::kInput, {.what = fmt::format("dimension {} of input \"{}\"", dimension, input_name),
                                    .found = std::to_string(extent(input, dimension)),
                                    .expected = expected});
  };
  for (const SymbolStep& s : solve_symbols(graph).steps) {
    const Symbol& symbol = graph.symbols[s.symbol];
    const std::int64_t left = extent(s.input, s.dimension) - evaluate(s.rest, value_of);
    const std::int64_t coefficient = evaluate(s.coefficient, value_of);
    const std::int64_t value = left / coefficient;
    if (left % coefficient != 0)
      complain(s.input, s.dimension,
               to_string(graph.tensor(graph.inputs[s.input]).shape[s.dimension], graph.symbols) + " for a whole " +
                   symbol.name);
    if (value < symbol.min || value > symbol.max || value % symbol.multiple_of != 0)
      complain(
          s.input, s.dimension,
          fmt::format("{} from {} to {}, a multiple of {}", symbol.name, symbol.min, symbol.max, symbol.multiple_of));
    values[s.symbol] = value;
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Shape& shape = graph.tensor(graph.inputs[i]).shape;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t want = evaluate(shape[d], value_of);
      if (extent(i, d) != want)
        complain(i, d,
                 shape[d].is_constant() ? std::to_string(want)
                                        : fmt::format("{} = {}", to_string(shape[d], graph.symbols), want));
    }
  }
  return values;
}

}  // namespace fusec
