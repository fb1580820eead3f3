// Reshaping: the same elements in the same row-major order under other dimensions.
//
//   [tokens, 4096] -> [tokens, 32, 128]: element [t, h, d] is element [t, 128*h + d]
#pragma once

#include "ir/ops/common.h"

namespace fusec::ops {

// The wanted shape with its -1 resolved. Throws OpError at `place` if the element counts cannot agree.
Shape resolved_shape(const OpCall& call, const Shape& from, const std::vector<Dim>& wanted, const std::string& place);

// The index in the original tensor of the element at `index` of the reshaped one. Dimensions are matched from the right
// in groups of equal element count, so dimensions that do not change, symbolic ones too, keep their index.
std::vector<IndexExpr> reshaped_index(const Shape& from, const Shape& to, std::span<const IndexExpr> index,
                                      ExprPool& pool);

}  // namespace fusec::ops
