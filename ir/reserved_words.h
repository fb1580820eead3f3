// Words that no name of a model may be in emitted source: keywords of C++, and what the toolkit and system headers
// declare.
#pragma once

#include <string_view>

namespace fusec {

bool is_reserved_word(std::string_view word);

// Why the launcher of a custom op may not have this name; empty where it may. The launcher is declared and called under
// that very name, so a name that the C library or CUDA exports would call that library's function (`system`, `abort`).
std::string_view launcher_name_fault(std::string_view text);
// For messages: what a launcher may be called.
inline constexpr std::string_view kLauncherName =
    "an identifier: letters, digits and _, first a letter, no word of C++ or CUDA, no name that a system library "
    "exports";

}  // namespace fusec
