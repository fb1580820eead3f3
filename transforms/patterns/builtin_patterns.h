// The built-in patterns: the files builtin/*.patterns, and the functions that some patterns have in code.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

// The texts of builtin/*.patterns, which the build embeds.
std::span<const std::string_view> builtin_pattern_files();

// The parsed patterns, a copy that the caller may change. They are parsed once a process.
std::vector<FusionPattern> builtin_patterns();

}  // namespace fusec
