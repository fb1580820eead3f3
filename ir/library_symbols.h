// Symbols that the C and C++ libraries, the CUDA runtime and driver, cuBLASLt and NCCL export. They are the sorted
// lines of library_symbols.txt, which scripts/list_library_symbols.py writes and the build embeds.
#pragma once

#include <span>
#include <string_view>

namespace fusec {

std::span<const std::string_view> library_symbols();

}  // namespace fusec
