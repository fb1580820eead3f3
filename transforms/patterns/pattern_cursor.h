// The parser's position in a pattern file, with functions to read a token or to report an error by line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transforms/patterns/pattern_tokens.h"

namespace fusec {

// Reserved words of the pattern language. `pattern` and `define` start a declaration; the others are clauses.
bool is_clause(std::string_view word);
bool starts_declaration(std::string_view word);
std::vector<std::string_view> clause_names();

class PatternCursor {
 public:
  // `file` appears in errors; "" for built-in text.
  PatternCursor(std::string_view text, const std::string& file)
      : text_(text), file_(file), tokens_(pattern_tokens(text, file)) {}

  const PatternToken& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const PatternToken& token(std::size_t number) const { return tokens_[number]; }
  std::size_t at() const { return at_; }

  bool is_sign(char c, std::size_t ahead = 0) const {
    return peek(ahead).kind == PatternToken::Kind::kSign && peek(ahead).text[0] == c;
  }
  bool is_word(std::size_t ahead = 0) const { return peek(ahead).kind == PatternToken::Kind::kWord; }
  bool is_number(std::size_t ahead = 0) const { return peek(ahead).kind == PatternToken::Kind::kNumber; }
  bool is_text() const { return peek().kind == PatternToken::Kind::kText; }
  bool is_end() const { return peek().kind == PatternToken::Kind::kEnd; }

  bool take(char c);
  bool take_word(std::string_view word);
  void demand(char c);
  std::string_view word(const char* expected);
  std::string text() { return std::string(tokens_[at_++].text); }
  double number();
  std::int64_t integer();       // a 64-bit literal without a point
  std::int64_t whole_number();  // a number below 1e9 without a fraction

  // The text from the offset to the end of the last token read, with single blanks.
  std::string text_since(std::size_t offset) const;

  std::size_t line_of(std::size_t token) const;
  [[noreturn]] void fail(std::size_t token, std::string what, std::string expected = "", std::string hint = "") const;
  [[noreturn]] void unexpected(const std::string& expected) const { fail(at_, "unexpected word", expected); }

 private:
  std::string_view text_;
  const std::string& file_;
  std::vector<PatternToken> tokens_;
  std::size_t at_ = 0;
};

}  // namespace fusec
