// A place in a text as editors count: lines and characters from 1.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fusec {

struct TextLocation {
  std::size_t line = 1, column = 1;
  bool operator==(const TextLocation&) const = default;
};

// The place of the byte at `offset` of a UTF-8 text.
TextLocation place_of(std::string_view text, std::size_t offset);

// "line 3, column 14"
std::string in_words(const TextLocation& place);

// The line of this number, without its line break; "" beyond the end.
std::string_view line_of(std::string_view text, std::size_t line);

}  // namespace fusec
