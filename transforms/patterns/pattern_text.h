// Reads patterns from text (pattern.h shows the form) and names what it cannot read by line and column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

// `file` is named in errors and kept with each pattern; "" for built-in text. `ops` are the ops that a pattern may name
// besides those of the table (custom ones have a dot in their names and need no row). Throws Error(kInput).
std::vector<FusionPattern> parse_patterns(std::string_view text, const std::string& file);

// Those with a higher priority first, else as given. Throws Error(kInput) where two have one name.
PatternList ordered(std::vector<FusionPattern> patterns);

}  // namespace fusec
