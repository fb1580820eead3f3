#include "codegen/guard.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/error.h"

namespace fusec {

namespace {

// The greatest number whose power is no more than this.
std::int64_t root(std::int64_t most, std::size_t exponent) {
  auto number = static_cast<std::int64_t>(std::pow(static_cast<double>(most), 1.0 / static_cast<double>(exponent))) + 1;
  const auto power = [&] { return std::pow(static_cast<double>(number), static_cast<double>(exponent)); };
  while (number > 0 && power() > static_cast<double>(most)) --number;
  return number;
}

}  // namespace

bool holds(const Guard& guard, std::span<const std::int64_t> symbols) {
  return std::ranges::all_of(guard, [&](const GuardCondition& condition) {
    double product = 1;
    for (const std::uint32_t s : condition.symbols) product *= static_cast<double>(symbols[s]);
    return symbols[condition.symbols.at(0)] % condition.multiple_of == 0 &&
           (condition.at_most == GuardCondition::kNoLimit || product <= static_cast<double>(condition.at_most));
  });
}

std::string guard_text(const Guard& guard, const std::function<std::string(std::uint32_t)>& name_of) {
  std::string text;
  const auto add = [&](const std::string& condition) { text += (text.empty() ? "" : " && ") + condition; };
  for (const GuardCondition& condition : guard) {
    if (condition.multiple_of != 1)
      add(name_of(condition.symbols.at(0)) + " % " + std::to_string(condition.multiple_of) + " == 0");
    if (condition.at_most == GuardCondition::kNoLimit) continue;
    std::string product = condition.symbols.size() > 1 ? "1.0 * " : "";
    for (std::size_t i = 0; i < condition.symbols.size(); ++i)
      product += (i ? " * " : "") + name_of(condition.symbols[i]);
    add(product + " <= " + std::to_string(condition.at_most) + (condition.at_most > INT32_MAX ? "LL" : ""));
  }
  return text;
}

GuardedSymbols assume(const Guard& guard, std::vector<Symbol> symbols) {
  GuardedSymbols known{std::move(symbols), {}};
  for (const GuardCondition& condition : guard) {
    Symbol& symbol = known.symbols.at(condition.symbols.at(0));
    if (condition.multiple_of != 1) symbol.multiple_of = std::lcm(symbol.multiple_of, condition.multiple_of);
    if (condition.at_most == GuardCondition::kNoLimit) continue;
    const bool power =
        std::ranges::all_of(condition.symbols, [&](std::uint32_t s) { return s == condition.symbols[0]; });
    if (power) symbol.max = std::min(symbol.max, root(condition.at_most, condition.symbols.size()));
    if (condition.symbols.size() > 1) known.products.push_back({condition.symbols, condition.at_most});
  }
  for (Symbol& symbol : known.symbols) {
    const std::int64_t step = symbol.multiple_of;
    const std::int64_t least = (symbol.min + step - 1) / step * step;
    symbol.hint = std::max(least, std::min(symbol.hint, symbol.max) / step * step);
  }
  return known;
}

bool is_possible(const GuardedSymbols& known) {
  const auto least = [&](std::uint32_t s) {
    const Symbol& symbol = known.symbols[s];
    return (symbol.min + symbol.multiple_of - 1) / symbol.multiple_of * symbol.multiple_of;
  };
  for (std::uint32_t s = 0; s < known.symbols.size(); ++s)
    if (least(s) > known.symbols[s].max) return false;
  return std::ranges::all_of(known.products, [&](const ProductLimit& limit) {
    double product = 1;
    for (const std::uint32_t s : limit.symbols) product *= static_cast<double>(least(s));
    return product <= static_cast<double>(limit.max);
  });
}

}  // namespace fusec
