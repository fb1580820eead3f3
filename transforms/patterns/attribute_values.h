// Attributes as a pattern sees them: dimensions counted from 0, numbers as numbers.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/attributes.h"

namespace fusec {

// Does the attribute name dimensions, counted from the end where negative?
bool names_dims(std::string_view attribute);
// Of a tensor of that rank; a list of one dimension is that dimension.
AttributeValue from_zero(AttributeValue value, std::int64_t rank);

// A number as it is meant: exactly, or to a millionth.
bool is_near(double found, double wanted, bool exact);
// Is the attribute what the pattern writes?
bool is_literal(const AttributeValue& found, const AttributeValue& literal);

}  // namespace fusec
