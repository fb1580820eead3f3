// Parses patterns from text (see pattern.h for the language). Errors name line and column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

// `file` appears in errors and is kept with each pattern; "" for built-in text. Throws Error(kInput).
std::vector<FusionPattern> parse_patterns(std::string_view text, const std::string& file);

}  // namespace fusec
