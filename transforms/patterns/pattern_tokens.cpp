#include "transforms/patterns/pattern_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.h"
#include "ir/spelling.h"
#include "ir/text_location.h"

namespace fusec {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// The length of the word at the beginning of `rest`. A dot belongs to it if a letter follows ("fusec.swiglu").
std::size_t word_length(std::string_view rest) {
  std::size_t n = 0;
  while (n < rest.size() &&
         (is_letter(rest[n]) || is_digit(rest[n]) || (rest[n] == '.' && n + 1 < rest.size() && is_letter(rest[n + 1]))))
    ++n;
  return n;
}

std::size_t number_length(std::string_view rest) {
  std::size_t n = rest.starts_with('-') ? 1 : 0;
  if (rest.substr(n).starts_with("inf")) return n + 3;
  while (n < rest.size() && (is_digit(rest[n]) || rest[n] == '.')) ++n;
  if (n < rest.size() && (rest[n] == 'e' || rest[n] == 'E')) {
    std::size_t m = n + 1;
    if (m < rest.size() && (rest[m] == '-' || rest[m] == '+')) ++m;
    if (m < rest.size() && is_digit(rest[m])) {
      while (m < rest.size() && is_digit(rest[m])) ++m;
      n = m;
    }
  }
  return n;
}

// The length of the first UTF-8 character in bytes.
std::size_t first_character_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) ++length;
  return length;
}

}  // namespace

std::vector<PatternToken> pattern_tokens(std::string_view text, const std::string& file) {
  using Kind = PatternToken::Kind;
  constexpr std::size_t kUsualLength = 4;
  std::vector<PatternToken> tokens;
  tokens.reserve(text.size() / kUsualLength);
  std::size_t at = 0;
  const auto fail = [&](const char* what, std::string found) {
    const TextLocation place = place_of(text, at);
    throw Error(ErrorKind::kInput, {.file = file.empty() ? "built-in patterns" : file,
                                    .line = place.line,
                                    .column = place.column,
                                    .what = fmt::format("{}: {}", in_words(place), what),
                                    .found = std::move(found)});
  };
  while (at < text.size()) {
    const char c = text[at];
    const std::string_view rest = text.substr(at);
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"') {
      const std::size_t end = rest.find_first_of("\"\n", 1);
      if (end == std::string_view::npos || rest[end] != '"') fail("a text without end", in_quotes(rest.substr(0, 20)));
      tokens.push_back({Kind::kText, rest.substr(1, end - 1), at});
      at += end + 1;
    } else if (rest.starts_with("inf") && word_length(rest) == 3) {
      tokens.push_back({Kind::kNumber, rest.substr(0, 3), at});
      at += 3;
    } else if (is_letter(c)) {
      const std::size_t n = word_length(rest);
      tokens.push_back({Kind::kWord, rest.substr(0, n), at});
      at += n;
    } else if (is_digit(c) || (c == '-' && at + 1 < text.size() && (is_digit(text[at + 1]) || text[at + 1] == 'i'))) {
      const std::size_t n = number_length(rest);
      tokens.push_back({Kind::kNumber, rest.substr(0, n), at});
      at += n;
    } else if (std::string_view("()[],=:|~?.*/").find(c) != std::string_view::npos) {
      tokens.push_back({Kind::kSign, rest.substr(0, 1), at});
      ++at;
    } else {
      fail("a character that belongs to no word", in_quotes(rest.substr(0, first_character_length(rest))));
    }
  }
  tokens.push_back({Kind::kEnd, {}, at});
  return tokens;
}

}  // namespace fusec
