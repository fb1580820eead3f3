// What holds for all lanes of a vector, or for none.
//
//   j * 8 + e < 4096    does, of the lanes e < 8: vectors begin at the bound
#pragma once

#include <cstdint>

#include "ir/expr.h"

namespace fusec {

// Of a condition made of comparisons of indices, and of what no lane changes.
bool is_lane_uniform(const ExprPool& pool, ExprId condition, std::uint32_t lane_axis, int width);

}  // namespace fusec
