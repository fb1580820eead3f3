// The patterns that fusec brings: the files builtin/*.patterns, and what is said of some of them in code.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

// The files' texts, as the build embedded them.
std::span<const std::string_view> builtin_pattern_files();

// Read once; a value that the caller may change.
std::vector<FusionPattern> builtin_patterns();

}  // namespace fusec
