// The tables of --list-ops, --list-passes, --list-patterns and --list-targets, as text or JSON.
#pragma once

#include <string>

#include "transforms/patterns/pattern_list.h"

namespace fusec {

std::string list_ops(bool json);
std::string list_passes(bool json);
std::string list_patterns(const PatternList& patterns, bool json);
std::string list_targets(bool json);

}  // namespace fusec
