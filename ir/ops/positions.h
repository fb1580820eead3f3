// Positions along a dimension, possibly symbolic: counted from either end, clamped, compared.
#pragma once

#include <optional>
#include <string>

#include "ir/ops/common.h"

namespace fusec::ops {

// A negative position counted from the end; others unchanged. The result is not clamped. If the sign of a symbolic
// position is unknown, the result is an expression that covers both cases.
Dim wrapped_position(const Dim& position, const Dim& size, const Bounds& bounds);

// The position clamped to [low, high], for low <= high.
Dim clamped_position(const Dim& position, const Dim& low, const Dim& high, const Bounds& bounds);

// Requires smaller <= greater: an error at `place` if the bounds disprove it, a launch check if they do not decide it.
void require_at_most(const OpCall& call, const Dim& smaller, const Dim& greater, const std::string& what,
                     const std::string& place);

// a / b where b divides a as a polynomial: (2*n*m + 4*m) / (2*m) = n + 2.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);

// The zero of a compute type.
E zero(Formula& f, ScalarType type);

}  // namespace fusec::ops
