// Reads JSON text that is as it should be, in one pass without copies: all that a large model needs. Where anything is
// not, it says so and no more; what is wrong, and where, is then told by nlohmann's parser (ir/json_document.cpp),
// which decides what JSON is.
#pragma once

#include <string_view>

#include "ir/json_builder.h"

namespace fusec {

// False where the text is no JSON, or holds what is rare (numbers that no double holds, say). Throws what the builder
// throws.
bool scan_json(std::string_view text, JsonBuilder& builder);

}  // namespace fusec
