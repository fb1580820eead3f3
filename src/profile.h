// The emulator's profiles of kernels, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "runtime/emulator_device.h"

namespace fusec {

std::string profile_text(const std::vector<KernelProfile>& profiles);
std::string profile_json(const std::vector<KernelProfile>& profiles);

// Reads a file that profile_json wrote, and returns its JSON text. Throws Error(kInput) if the file is something else.
std::string read_profile(const std::string& path);

// Throws Error(kInput) if a profile that was read has a kernel that `model` lacks: it is of another model or other
// options.
void require_profile_of(const std::string& profile, const std::string& path, const std::string& model,
                        const std::vector<std::string>& kernels);

}  // namespace fusec
