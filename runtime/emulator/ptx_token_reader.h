// A cursor over the tokens of a PTX file, with the checks that all parts of the parser share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/emulator/ptx_lexer.h"

namespace fusec::emulator {

class TokenReader {
 public:
  TokenReader(std::string_view text, const std::string& file) : tokens_(lex_ptx(text, file)), file_(file) {}

  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool accept(std::string_view punctuation) {
    if (!peek().is(punctuation)) return false;
    take();
    return true;
  }
  bool accept_dot(std::string_view word) {
    if (!peek().is_dot(word)) return false;
    take();
    return true;
  }
  [[noreturn]] void fail(std::string what, std::string expected = {}) const {
    throw_ptx_error(file_, peek().line, std::move(what), shown(peek()), std::move(expected));
  }
  static std::string shown(const Token& token) {
    if (token.kind == Token::Kind::kEnd) return "the end of the file";
    return (token.kind == Token::Kind::kDotWord ? "." : "") + std::string(token.text.substr(0, 80));
  }
  void expect(std::string_view punctuation) {
    if (!accept(punctuation)) fail("unexpected text", "\"" + std::string(punctuation) + "\"");
  }
  std::string_view identifier() {
    if (peek().kind != Token::Kind::kIdentifier) fail("a name is missing");
    return take().text;
  }
  std::uint64_t integer() {
    const bool negative = accept("-");
    if (peek().kind != Token::Kind::kInteger) fail("an integer is missing");
    const std::uint64_t value = take().value;
    return negative ? 0 - value : value;
  }
  void skip_line() {
    const int line = peek().line;
    while (peek().kind != Token::Kind::kEnd && peek().line == line) take();
  }
  void skip_braces() {
    int depth = 0;
    do {
      if (peek().is("{")) ++depth;
      if (peek().is("}")) --depth;
      if (peek().kind == Token::Kind::kEnd) fail("section without an end");
      take();
    } while (depth > 0);
  }

  void skip_parentheses() {
    int depth = 0;
    do {
      if (peek().is("(")) ++depth;
      if (peek().is(")")) --depth;
      if (peek().kind == Token::Kind::kEnd) fail("parenthesis without an end");
      take();
    } while (depth > 0);
  }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::string file_;
};

}  // namespace fusec::emulator
