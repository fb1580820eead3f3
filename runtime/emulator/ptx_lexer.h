// Splits PTX text into tokens. Words with a leading dot (".f32", ".shared::cta") are tokens of their own, so that an
// opcode is an identifier followed by such words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusec::emulator {

struct Token {
  enum class Kind : std::uint8_t { kIdentifier, kDotWord, kInteger, kFloat32, kFloat64, kString, kPunctuation, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;    // source text; a dot word without its dot, a string without its quotes
  std::uint64_t value = 0;  // the value of an integer, the bits of a float
  int line = 0;             // 1-based

  bool is(std::string_view punctuation) const { return kind == Kind::kPunctuation && text == punctuation; }
  bool is_dot(std::string_view word) const { return kind == Kind::kDotWord && text == word; }
};

// The last token is kEnd. Throws Error (kInput) that names `file` and the line at a byte that starts no token.
// The tokens point into `text`.
std::vector<Token> lex_ptx(std::string_view text, const std::string& file);

// Throws the Error for a line of PTX text.
[[noreturn]] void throw_ptx_error(const std::string& file, int line, std::string what, std::string found = {},
                                  std::string expected = {});

}  // namespace fusec::emulator
