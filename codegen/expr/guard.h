// Conditions on a model's symbols that a kernel's form needs. The launch looks at the symbols' values and takes the
// form where they hold, else a general one:
//
//   n % 8 == 0 && n <= 32768        vectors of 16 bytes, rows kept in registers
//   batch * n <= 524272             32-bit indices
//   tokens >= 17                    tiles for more rows than few
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "ir/bounds.h"

namespace fusec {

// A product of symbols is a multiple of something, and no more than something; a single one no less than something.
struct GuardCondition {
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

  std::vector<std::uint32_t> symbols;  // sorted, one at least; a single one where `multiple_of` is not 1
  std::int64_t multiple_of = 1;
  std::int64_t at_most = kNoLimit;
  std::int64_t at_least = 0;  // of a single one as well
  auto operator<=>(const GuardCondition&) const = default;
};

using Guard = std::vector<GuardCondition>;  // all hold

bool holds(const Guard& guard, std::span<const std::int64_t> symbols);

// As C++ with 64-bit integers; products of symbols are formed as doubles, which do not overflow.
std::string guard_text(const Guard& guard, const std::function<std::string(std::uint32_t symbol)>& name_of);

// What is known of the symbols where the guard holds. Hints are moved to values that are allowed there.
struct GuardedSymbols {
  std::vector<Symbol> symbols;
  std::vector<ProductLimit> products;
};
GuardedSymbols assume(const Guard& guard, const Symbols& symbols);

// Some values of the symbols satisfy both their bounds and the guard.
bool is_possible(const GuardedSymbols& known);

}  // namespace fusec
