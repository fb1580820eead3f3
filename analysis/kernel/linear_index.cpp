#include "analysis/kernel/linear_index.h"

#include <algorithm>

#include "ir/graph.h"

namespace fusec {

bool over_symbols(const IndexExpr& e) {
  return std::ranges::all_of(variables_of(e), [](const Variable v) { return v.kind == Variable::Kind::kSymbol; });
}

std::optional<LinearIndex> linear_in(const IndexExpr& e, std::span<const std::uint32_t> axes) {
  // Returns `e` with the axis `one` at 1 and all other axes at 0.
  const auto with_one = [&](std::uint32_t one) {
    return substitute(e, [&](Variable v) -> std::optional<IndexExpr> {
      if (v.kind != Variable::Kind::kAxis) return std::nullopt;
      return IndexExpr(v.id == one ? 1 : 0);
    });
  };
  LinearIndex result{.base = with_one(kNone)};
  IndexExpr rebuilt = result.base;
  for (const std::uint32_t axis : axes) {
    result.strides.push_back(with_one(axis) - result.base);
    rebuilt += result.strides.back() * IndexExpr::axis(axis);
  }
  if (rebuilt != e || !over_symbols(result.base)) return std::nullopt;
  if (!std::ranges::all_of(result.strides, over_symbols)) return std::nullopt;
  return result;
}

}  // namespace fusec
