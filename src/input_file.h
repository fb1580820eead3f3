// Text files that a user names beside the model: plans, patterns, targets.
#pragma once

#include <string>

namespace fusec {

// Throws Error(kInput) where it cannot be read.
std::string read_text_file(const std::string& path);

}  // namespace fusec
