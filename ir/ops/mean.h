// The mean that variances and norms subtract.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "ir/formula.h"

namespace fusec::ops {

// The mean of `body` over `extents`, finite if all elements are. Each element is scaled by a power of two below
// 1 / count before it is added, so the sum does not overflow. The scale is free: it is the multiplication of a
// multiply-add. Elements below 2^-95 may lose bits; their squares are 0 anyway. float16 needs no scale.
//
//   768 elements   sum(x * 2^-10) / 0.75
inline E scaled_mean(Formula& f, DType dtype, const std::vector<IndexExpr>& extents,
                     const std::function<E(Formula::Index)>& body) {
  constexpr double kScaleOfUnknown = 0x1p-31;
  IndexExpr count = 1;
  for (const IndexExpr& e : extents) count *= e;
  count = f.simplified(count);
  const auto known = count.as_constant();
  double scale = known ? 1 : kScaleOfUnknown;
  while (known && *known > 1 && scale * static_cast<double>(*known) >= 1) scale /= 2;
  if (dtype == DType::kFloat16) scale = 1;
  const E total = f.sum(extents, [&](Formula::Index k) { return body(k) * scale; });
  if (known) return total / f.number(scale * static_cast<double>(*known), total.type());
  return total / (f.convert(f.index(count), total.type()) * scale);
}

}  // namespace fusec::ops
