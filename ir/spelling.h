// Names in messages: quotes text from a file so that it stays on one line, and finds the name that a misspelt one
// meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The text in double quotes with JSON escapes. Text of more than 80 bytes is cut, followed by its length.
std::string in_quotes(std::string_view text);

// The whole text as a JSON string.
std::string json_string(std::string_view text);

// "a, b, c". Of more than `most` names: the first ones and the number of all.
std::string listed(std::span<const std::string> names, std::size_t most = 40);

// Edit distance of two names: insertions, deletions, changes and swaps of neighbours. Returns limit + 1 for anything
// above `limit`.
std::size_t spelling_distance(std::string_view a, std::string_view b, std::size_t limit);

// The candidate nearest to the misspelt `word` (the first of equally near ones); "" if none is near.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

// "did you mean NAME?"; "" if no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace fusec
