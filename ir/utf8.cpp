#include "ir/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace fusec {

std::size_t character_length(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : static_cast<unsigned char>(0);
  };
  auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool beyond = first == 0xf4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::size_t first_bad_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t block;
    if (at + sizeof block <= text.size()) {  // nearly all text is ASCII
      std::memcpy(&block, text.data() + at, sizeof block);
      if ((block & 0x8080808080808080ull) == 0) {
        at += sizeof block;
        continue;
      }
    }
    const std::size_t length = character_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return at;
}

std::string pointer_token(std::string_view text) {
  constexpr std::size_t kLongest = 256;
  std::string token;
  std::size_t at = 0;
  while (at < text.size() && at < kLongest) {
    const std::size_t length = std::max<std::size_t>(1, character_length(text, at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (text[at] == '~')
      token += "~0";
    else if (text[at] == '/')
      token += "~1";
    else if (byte < 0x20 || byte == 0x7f)
      token += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
    else
      token += text.substr(at, length);
    at += length;
  }
  if (at < text.size()) token += "...";
  return token;
}

}  // namespace fusec
