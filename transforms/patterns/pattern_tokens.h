// Splits the text of a pattern file into tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusec {

struct PatternToken {
  enum class Kind : std::uint8_t { kWord, kNumber, kText, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;   // for kText without its quotes
  std::size_t offset = 0;  // bytes from the beginning of the file
};

// Throws Error(kInput) for a character that begins no token, and for a text without a closing quote.
std::vector<PatternToken> pattern_tokens(std::string_view text, const std::string& file);

}  // namespace fusec
