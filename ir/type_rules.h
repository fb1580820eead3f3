// The rules that every tensor of a model obeys, declared or inferred.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/type.h"

namespace fusec {

// At most 64 dimensions, none negative, fewer than 2^63 elements and bytes; 4-bit types have an even last dimension.
// Throws OpError without a place. What the bounds do not decide goes to `checks` where that is given; `what` names the
// tensor there.
void check_type(const TensorType& type, const Symbols& symbols, std::vector<LaunchCheck>* checks,
                const std::string& what);

// Do the two types agree? Equal polynomials do; proven different ones do not; the rest goes to `checks`.
bool types_agree(const TensorType& a, const TensorType& b, const Symbols& symbols, std::vector<LaunchCheck>* checks,
                 const std::string& what);

// "[tokens, 4096]"
std::string shape_text(const Shape& shape, const Symbols& symbols);

}  // namespace fusec
