// Words that emitted source must not use as names: keywords of C++ and names that the toolkit's and system headers
// declare.
#pragma once

#include <string_view>

namespace fusec {

bool is_reserved_word(std::string_view word);

// Why the launcher of a custom op may not have this name; empty if it may. Emitted code declares and calls the launcher
// under this name, so a name that the C library or CUDA exports would call that function (`system`, `abort`).
std::string_view launcher_name_fault(std::string_view text);
// The rule for launcher names, for messages.
inline constexpr std::string_view kLauncherName =
    "an identifier: letters, digits and _, first a letter, no word of C++ or CUDA, no name that a system library "
    "exports";

}  // namespace fusec
