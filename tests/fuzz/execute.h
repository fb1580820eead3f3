// The one entry of all fuzzing: PTX text of any kind is either refused with fusec::Error or runs within its budget.
#pragma once

#include <string_view>

namespace fusec::emulator::fuzzing {

// Parses, decodes and runs every kernel of `text` over small buffers. Returns how many kernels ran.
int execute_ptx(std::string_view text);

}  // namespace fusec::emulator::fuzzing
