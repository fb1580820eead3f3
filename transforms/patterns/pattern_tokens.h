// The words of a pattern file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusec {

struct PatternToken {
  enum class Kind : std::uint8_t { kWord, kNumber, kText, kSign, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  // of a kText without its quotes
  std::size_t offset = 0;
};

// Throws Error(kInput) for a character that belongs to no word, and for a text without end.
std::vector<PatternToken> pattern_tokens(std::string_view text, const std::string& file);

}  // namespace fusec
