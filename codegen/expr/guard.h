// Guards: conditions on the model's symbolic sizes under which a specialized form of a kernel is valid. At launch the
// host checks the symbols and selects the specialized form if its guard holds, otherwise the general form.
//
//   n % 8 == 0 && n <= 32768        16-byte vectors, rows kept in registers
//   batch * n <= 524272             32-bit indices
//   tokens >= 17                    GEMM tiles instead of a skinny GEMM
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

// A condition on a product of symbols: `multiple_of` divides it and it is at most `at_most`. `at_least` applies to a
// single symbol only.
struct GuardCondition {
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

  std::vector<std::uint32_t> symbols;  // sorted, at least one; exactly one if `multiple_of` is not 1
  std::int64_t multiple_of = 1;
  std::int64_t at_most = kNoLimit;
  std::int64_t at_least = 0;  // exactly one symbol if this is not 0
  auto operator<=>(const GuardCondition&) const = default;
};

using Guard = std::vector<GuardCondition>;  // a conjunction

bool holds(const Guard& guard, std::span<const std::int64_t> symbols);

// The guard as a C++ condition. Products of symbols are computed as doubles, which do not overflow.
std::string guard_text(const Guard& guard, const std::function<std::string(std::uint32_t symbol)>& name_of);

// The symbols and limits under the assumption that the guard holds. Hints are moved into the allowed range.
struct GuardedSymbols {
  std::vector<Symbol> symbols;
  std::vector<ProductLimit> products;
};
GuardedSymbols assume(const Guard& guard, const Symbols& symbols);

// True if some values of the symbols satisfy both their bounds and the guard.
bool is_possible(const GuardedSymbols& known);

}  // namespace fusec
