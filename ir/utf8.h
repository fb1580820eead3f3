// Checks on text that comes from files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fusec {

// Bytes of the character that begins at `at`; 0 if it is not well-formed.
std::size_t character_length(std::string_view text, std::size_t at);

// Offset of the first byte that is not well-formed UTF-8; text.size() if there is none. Overlong forms, surrogates and
// values above U+10FFFF are not well-formed.
std::size_t first_bad_utf8(std::string_view text);

// A key or name as one token of a JSON pointer (RFC 6901: ~0 for ~, ~1 for /), cut after 256 bytes. Control characters
// become \u00XX, so that a message stays on one line.
std::string pointer_token(std::string_view text);

}  // namespace fusec
