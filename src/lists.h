// What this build knows, as tables for people or JSON for machines: --list-ops, --list-passes, --list-patterns,
// --list-targets.
#pragma once

#include <string>

#include "transforms/patterns/pattern.h"

namespace fusec {

std::string list_ops(bool json);
std::string list_passes(bool json);
std::string list_patterns(const PatternList& patterns, bool json);
std::string list_targets(bool json);

}  // namespace fusec
