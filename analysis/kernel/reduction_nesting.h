// Finds which expressions are inside reductions, and which contain a given kind of expression. Each answer covers all
// expressions in one walk; a walk per reduction would take quadratic time in a chain of reductions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace fusec {

// Returns, by expression, how many nested reductions contain it. `order` has operands before users.
std::vector<std::uint32_t> nesting(const ExprPool& pool, std::span<const ExprId> order);

// Returns, by expression, 1 if `is` holds for it or for something it depends on. `order` has operands before users.
std::vector<std::uint8_t> holding(const ExprPool& pool, std::span<const ExprId> order,
                                  const std::function<bool(ExprId)>& is);

// Returns, by expression, 1 if it is a reduction or depends on one.
std::vector<std::uint8_t> holding_reductions(const ExprPool& pool, std::span<const ExprId> order);

}  // namespace fusec
