// Names in messages: quoting text from a file so that it stays on one line, and guessing what a misspelt name meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The text in double quotes, escaped as JSON escapes it; text of more than 80 bytes is cut and its length told.
std::string in_quotes(std::string_view text);

// The text as a JSON string, whole.
std::string json_string(std::string_view text);

// "a, b, c"; of more than `most` names the first ones and how many there are.
std::string listed(std::span<const std::string> names, std::size_t most = 40);

// Number of insertions, deletions, changes and swaps of neighbours between two names; anything above `limit` counts as
// limit + 1.
std::size_t spelling_distance(std::string_view a, std::string_view b, std::size_t limit);

// The candidate that `word` is most likely a misspelling of (the first of equally near ones), or "".
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

// "did you mean NAME?", or "" where no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace fusec
