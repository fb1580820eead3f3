// Positions along a dimension, possibly symbolic: counted from either end, clamped, compared.
#pragma once

#include <optional>
#include <string>

#include "ir/ops/common.h"

namespace fusec::ops {

// A position below zero counts from the end. Where the sign of a symbolic position is not known, so says the result.
Dim wrapped_position(const Dim& position, const Dim& size, const Bounds& bounds);

// low <= result <= high (where low <= high).
Dim clamped_position(const Dim& position, const Dim& low, const Dim& high, const Bounds& bounds);

// `smaller` <= `greater`, or an error at `place`, or, where the bounds do not decide it, a check at launch.
void require_at_most(const OpCall& call, const Dim& smaller, const Dim& greater, const std::string& what,
                     const std::string& place);

// a / b where b divides a as a polynomial: (2*n*m + 4*m) / (2*m) = n + 2.
std::optional<Dim> exact_quotient(const Dim& a, const Dim& b);

// The zero of a compute type.
E zero(Formula& f, ScalarType type);

}  // namespace fusec::ops
