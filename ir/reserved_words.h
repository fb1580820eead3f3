// Words that no name of a model may be in emitted source: keywords of C++, and what the toolkit and system headers
// declare.
#pragma once

#include <string_view>

namespace fusec {

bool is_reserved_word(std::string_view word);

// What the launcher of a custom op may be called, since it is declared and called under that very name: an identifier,
// no reserved word, nothing that the CUDA libraries or the standard claim (cuda..., nccl..., __x, _X).
bool is_launcher_name(std::string_view text);
// For messages: what is_launcher_name asks for.
inline constexpr std::string_view kLauncherName =
    "an identifier: letters, digits and _, no digit first, no word of C++ or CUDA";

}  // namespace fusec
