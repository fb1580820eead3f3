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

// A built-in pattern as the build lists it (cmake/pattern_table.cpp), so that one whose ops a model lacks need not
// be parsed.
struct BuiltinPattern {
  std::string_view name;
  int priority = 0;
  Becomes becomes = Becomes::kGroup;
  // A necessary condition on a graph's ops: "mul sigmoid|silu" means that it has mul, and sigmoid or silu.
  std::string_view needed_ops;
  std::string_view text;  // of the pattern and the forms that it uses
};

// All of them, in the order of builtin_patterns(). Defined in the library fusec.
std::span<const BuiltinPattern> builtin_pattern_table();

FusionPattern parse_builtin_pattern(const BuiltinPattern& listed);

}  // namespace fusec
