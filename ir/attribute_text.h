// Attribute values and numbers as JSON text, shared by the model file writer and the readable text form.
#pragma once

#include <string>

#include "ir/attributes.h"
#include "ir/bounds.h"

namespace fusec {

// 2, 2.0, true, "inf" (infinities and NaN as strings, as the format has them).
std::string json_text(const Scalar& scalar);
// An element of a constant's data. Floats have the fewest digits that round to the same value of the dtype.
std::string element_text(const Scalar& element, DType dtype);
// A dimension: 4096, "2*tokens".
std::string json_text(const Dim& dim, const Symbols& symbols);
// An attribute's value as the format writes it.
std::string json_text(const AttributeValue& value, const Symbols& symbols);

}  // namespace fusec
