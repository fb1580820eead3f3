// Reads an op's attributes from the file and converts them to the types that the op's row declares.
#pragma once

#include "ir/read_context.h"

namespace fusec {

// Unknown attributes, missing required ones and wrong types are errors; type inference checks whether values are in
// range. All attributes of a custom op are kept: strings as strings, the rest as JSON text.
Attributes read_attributes(const ReadContext& context, Json node, const std::optional<Json>& attrs, const OpDef& op,
                           const SymbolNames& names);

// A JSON number or boolean as a weakly typed scalar.
Scalar read_scalar(const ReadContext& context, Json at, const char* what);

}  // namespace fusec
