#include "ir/text_location.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusec {

TextLocation place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_break = before.rfind('\n');
  const std::string_view line = line_break == std::string_view::npos ? before : before.substr(line_break + 1);
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return {.line = 1 + static_cast<std::size_t>(std::ranges::count(before, '\n')),
          .column = 1 + static_cast<std::size_t>(std::ranges::count_if(line, begins_character))};
}

std::string in_words(const TextLocation& place) {
  return fmt::format("line {}, column {}", place.line, place.column);
}

std::string_view line_of(std::string_view text, std::size_t line) {
  for (; line > 1; --line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace fusec
