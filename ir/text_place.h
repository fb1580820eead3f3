// A place in a text as editors count it: lines and characters from 1. Messages write it "line 3, column 14".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fusec {

struct TextPlace {
  std::size_t line = 1, column = 1;
  bool operator==(const TextPlace&) const = default;
};

// Of the byte at `offset` of a UTF-8 text.
TextPlace place_of(std::string_view text, std::size_t offset);

// "line 3, column 14"
std::string in_words(const TextPlace& place);

// The place with which a message begins: "line 3, column 14: ...", "not JSON at line 3, column 14". Of "line 3: ..."
// the column is 0.
std::optional<TextPlace> place_in_words(std::string_view message);

// The line of this number, without its line break; "" beyond the end.
std::string_view line_of(std::string_view text, std::size_t line);

}  // namespace fusec
