// What this build knows, as tables for people or JSON for machines: --list-ops, --list-passes, --list-targets.
#pragma once

#include <string>

namespace fusec {

std::string list_ops(bool json);
std::string list_passes(bool json);
std::string list_targets(bool json);

}  // namespace fusec
