#include "codegen/expr/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/error.h"

namespace fusec {

namespace {

// The largest integer with a power of at most `most`.
std::int64_t root(std::int64_t most, std::size_t exponent) {
  auto number = static_cast<std::int64_t>(std::pow(static_cast<double>(most), 1.0 / static_cast<double>(exponent))) + 1;
  const auto power = [&] { return std::pow(static_cast<double>(number), static_cast<double>(exponent)); };
  while (number > 0 && power() > static_cast<double>(most)) --number;
  return number;
}

const char* long_if(std::int64_t limit) {
  return limit > INT32_MAX ? "LL" : "";
}

std::int64_t least(const Symbol& symbol) {
  return (symbol.min + symbol.multiple_of - 1) / symbol.multiple_of * symbol.multiple_of;
}

// Lowers the maximum of each symbol to the limit divided by the other symbols' minima.
void lower_bounds(const ProductLimit& limit, std::vector<Symbol>& symbols) {
  double product = 1;
  for (const std::uint32_t s : limit.symbols) product *= static_cast<double>(least(symbols[s]));
  if (product < 1) return;
  for (const std::uint32_t s : limit.symbols) {
    Symbol& symbol = symbols[s];
    const double others = product / static_cast<double>(least(symbol));
    if (static_cast<double>(symbol.max) > static_cast<double>(limit.max) / others)
      symbol.max = static_cast<std::int64_t>(static_cast<double>(limit.max) / others);
  }
}

// Lowers the largest hints until their product is within the limit.
void lower_hints(const ProductLimit& limit, std::vector<Symbol>& symbols) {
  std::vector<std::uint32_t> order = limit.symbols;
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) { return symbols[a].hint > symbols[b].hint; });
  for (const std::uint32_t s : order) {
    Symbol& symbol = symbols[s];
    double others = 1;
    for (const std::uint32_t o : limit.symbols) others *= o == s ? 1 : static_cast<double>(symbols[o].hint);
    const auto power = static_cast<std::size_t>(std::ranges::count(limit.symbols, s));
    if (others < 1 || others * std::pow(static_cast<double>(symbol.hint), power) <= static_cast<double>(limit.max))
      return;
    const std::int64_t most = root(static_cast<std::int64_t>(static_cast<double>(limit.max) / others), power);
    symbol.hint = std::max(least(symbol), most / symbol.multiple_of * symbol.multiple_of);
  }
}

}  // namespace

bool holds(const Guard& guard, std::span<const std::int64_t> symbols) {
  return std::ranges::all_of(guard, [&](const GuardCondition& condition) {
    double product = 1;
    for (const std::uint32_t s : condition.symbols) product *= static_cast<double>(symbols[s]);
    const std::int64_t first = symbols[condition.symbols.at(0)];
    return first % condition.multiple_of == 0 && first >= condition.at_least &&
           (condition.at_most == GuardCondition::kNoLimit || product <= static_cast<double>(condition.at_most));
  });
}

std::string guard_text(const Guard& guard, const std::function<std::string(std::uint32_t)>& name_of) {
  std::string text;
  const auto add = [&](const std::string& condition) { text += (text.empty() ? "" : " && ") + condition; };
  for (const GuardCondition& condition : guard) {
    if (condition.multiple_of != 1)
      add(fmt::format("{} % {} == 0", name_of(condition.symbols.at(0)), condition.multiple_of));
    if (condition.at_least > 0)
      add(fmt::format("{} >= {}{}", name_of(condition.symbols.at(0)), condition.at_least, long_if(condition.at_least)));
    if (condition.at_most == GuardCondition::kNoLimit) continue;
    std::string product = condition.symbols.size() > 1 ? "1.0 * " : "";
    for (std::size_t i = 0; i < condition.symbols.size(); ++i)
      product += (i ? " * " : "") + name_of(condition.symbols[i]);
    add(fmt::format("{} <= {}{}", product, condition.at_most, long_if(condition.at_most)));
  }
  return text;
}

GuardedSymbols assume(const Guard& guard, const Symbols& symbols) {
  GuardedSymbols known{symbols.list(), {}};
  for (const GuardCondition& condition : guard) {
    Symbol& symbol = known.symbols.at(condition.symbols.at(0));
    if (condition.multiple_of != 1) symbol.multiple_of = std::lcm(symbol.multiple_of, condition.multiple_of);
    symbol.min = std::max(symbol.min, condition.at_least);
    if (condition.at_most == GuardCondition::kNoLimit) continue;
    const bool power =
        std::ranges::all_of(condition.symbols, [&](std::uint32_t s) { return s == condition.symbols[0]; });
    if (power) symbol.max = std::min(symbol.max, root(condition.at_most, condition.symbols.size()));
    if (condition.symbols.size() > 1) known.products.push_back({condition.symbols, condition.at_most});
  }
  for (const ProductLimit& limit : known.products) lower_bounds(limit, known.symbols);
  for (Symbol& symbol : known.symbols)
    symbol.hint = std::max(least(symbol), std::min(symbol.hint, symbol.max) / symbol.multiple_of * symbol.multiple_of);
  for (const ProductLimit& limit : known.products) lower_hints(limit, known.symbols);
  return known;
}

bool is_possible(const GuardedSymbols& known) {
  if (std::ranges::any_of(known.symbols, [](const Symbol& symbol) { return least(symbol) > symbol.max; })) return false;
  return std::ranges::all_of(known.products, [&](const ProductLimit& limit) {
    double product = 1;
    for (const std::uint32_t s : limit.symbols) product *= static_cast<double>(least(known.symbols[s]));
    return product <= static_cast<double>(limit.max);
  });
}

}  // namespace fusec
