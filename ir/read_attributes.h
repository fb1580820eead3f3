// An op's attributes from the file, brought to the types that the op's row declares.
#pragma once

#include "ir/read_context.h"

namespace fusec {

// `attrs` may be absent. Unknown attributes, missing required ones and wrong types are errors; whether a value is in
// range is for inference to say. Attributes of a custom op are kept: strings as strings, the rest as JSON text.
Attributes read_attributes(const ReadContext& context, Json node, const std::optional<Json>& attrs, const OpDef& op,
                           const SymbolNames& names);

// A JSON number or boolean as a weakly typed scalar.
Scalar read_scalar(const ReadContext& context, Json at, const char* what);

}  // namespace fusec
