// Which expressions stand within reductions, and which hold some expression: each in one walk for all of them, where a
// walk below each reduction would take time quadratic in a chain of reductions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace fusec {

// By expression: how many reductions it stands in, one within another; `order` has operands before users.
std::vector<std::uint32_t> nesting(const ExprPool& pool, std::span<const ExprId> order);

// By expression: is it, or does it need, one of those that `is` tells? `order` has operands before users.
std::vector<std::uint8_t> holding(const ExprPool& pool, std::span<const ExprId> order,
                                  const std::function<bool(ExprId)>& is);

// By expression: is it a reduction, or does it need one?
std::vector<std::uint8_t> holding_reductions(const ExprPool& pool, std::span<const ExprId> order);

}  // namespace fusec
