// What the emulator counted, for people and for machines.
#pragma once

#include <string>
#include <vector>

#include "runtime/emulator_device.h"

namespace fusec {

std::string profile_text(const std::vector<KernelProfile>& profiles);
std::string profile_json(const std::vector<KernelProfile>& profiles);

// The JSON of such a file. Throws Error(kInput) where it holds something else.
std::string read_profile(const std::string& path);

}  // namespace fusec
