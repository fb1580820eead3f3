// Names in the readable text form (ir/text.h).
#pragma once

#include <string>
#include <string_view>

namespace fusec {

// Whether a bare name may contain the character (a digit may not come first).
inline bool is_bare_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

bool is_text_keyword(std::string_view word);

// The name itself if it may be bare, else as a JSON string.
std::string text_name(std::string_view name);

}  // namespace fusec
