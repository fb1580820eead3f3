// Rules for the type of every tensor of a model, declared or inferred.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/type.h"

namespace fusec {

// At most 64 dimensions, none negative, fewer than 2^63 elements and bytes; 4-bit types have an even last dimension.
// Throws OpError with an empty `place`. Rules that the bounds do not decide go to `checks`, if given; `what` names the
// tensor there.
void check_type(const TensorType& type, const Symbols& symbols, std::vector<LaunchCheck>* checks,
                const std::string& what);

// Whether two types have the same dtype, rank and dimensions. Dimensions that the bounds do not decide go to `checks`,
// if given, and count as equal.
bool types_agree(const TensorType& a, const TensorType& b, const Symbols& symbols, std::vector<LaunchCheck>* checks,
                 const std::string& what);

// "[tokens, 4096]"
std::string shape_text(const Shape& shape, const Symbols& symbols);

}  // namespace fusec
