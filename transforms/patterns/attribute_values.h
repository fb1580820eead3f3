// Compares attributes with those of a pattern: dimensions are counted from 0, and numbers compare by value.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/attributes.h"

namespace fusec {

// Whether an attribute of this name (dim, dims, axis, ...) holds dimensions, where negative ones count from the end.
bool names_dims(std::string_view attribute);
// Adds `rank` to negative dimensions. A list of one dimension becomes a single integer.
AttributeValue from_zero(AttributeValue value, std::int64_t rank);

// Whether two numbers are equal, or (unless `exact`) differ by at most a millionth of `wanted`.
bool is_near(double found, double wanted, bool exact);
// Whether an attribute equals a literal of a pattern.
bool is_literal(const AttributeValue& found, const AttributeValue& literal);

}  // namespace fusec
