// An index that is linear in axes, with sizes that symbols alone decide: where a matrix begins and its strides.
//
//   x[b, h, i, k] at ((b * 12 + h) * n + i) * 64 + k     strides 12 * n * 64, n * 64, 64, 1
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/index_expr.h"

namespace fusec {

// base + sum of stride * axis
struct LinearIndex {
  IndexExpr base = 0;
  std::vector<IndexExpr> strides;  // of each axis
};

// Nothing where it is not linear, or other axes and values are in it.
std::optional<LinearIndex> linear_in(const IndexExpr& e, std::span<const std::uint32_t> axes);

// Has it no axis and no value?
bool over_symbols(const IndexExpr& e);

}  // namespace fusec
