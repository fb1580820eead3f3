// An index that is linear in axes, with coefficients made of symbols and constants: the offset and strides of a matrix.
//
//   x[b, h, i, k] at ((b * 12 + h) * n + i) * 64 + k     strides 12 * n * 64, n * 64, 64, 1
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/index_expr.h"

namespace fusec {

// base + the sum over axes of stride * axis
struct LinearIndex {
  IndexExpr base = 0;
  std::vector<IndexExpr> strides;  // by axis, in the order given
};

// Returns nothing if `e` is not linear in `axes`, or contains other axes or loaded values.
std::optional<LinearIndex> linear_in(const IndexExpr& e, std::span<const std::uint32_t> axes);

// Returns whether `e` contains symbols and constants only.
bool over_symbols(const IndexExpr& e);

}  // namespace fusec
