// The fast path of JSON parsing: one pass without copies over well-formed text. For any other text scan_json only
// returns false; nlohmann's parser (ir/json_document.cpp) then decides whether the text is JSON and reports the error.
#pragma once

#include <string_view>

#include "ir/json_builder.h"

namespace fusec {

// False if the text is not JSON, or holds something rare such as a number beyond the range of a double. Throws what the
// builder throws.
bool scan_json(std::string_view text, JsonBuilder& builder);

}  // namespace fusec
