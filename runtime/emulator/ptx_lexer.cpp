#include "runtime/emulator/ptx_lexer.h"

#include <bit>
#include <charconv>
#include <cstdlib>

#include "ir/error.h"
#include "ir/spelling.h"

namespace fusec::emulator {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<Token> run() {
    while (skip_space(), at_ < text_.size()) next();
    tokens_.push_back({.kind = Token::Kind::kEnd, .line = line_});
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\0' || c == '\f' || c == '\v') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        at_ += 2;
        while (at_ < text_.size() && !(text_[at_] == '*' && peek(1) == '/')) {
          if (text_[at_] == '\n') ++line_;
          ++at_;
        }
        at_ = std::min(at_ + 2, text_.size());
      } else {
        return;
      }
    }
  }

  void push(Token::Kind kind, std::size_t begin, std::size_t end, std::uint64_t value = 0) {
    tokens_.push_back({.kind = kind, .text = text_.substr(begin, end - begin), .value = value, .line = line_});
  }

  void next() {
    const char c = peek();
    const std::size_t begin = at_;
    if (is_letter(c) || c == '_' || c == '$' || c == '%') {
      ++at_;
      while (is_word(peek())) ++at_;
      push(Token::Kind::kIdentifier, begin, at_);
    } else if (c == '.' && (is_word(peek(1)))) {
      ++at_;
      while (is_word(peek()) || (peek() == ':' && peek(1) == ':' && is_word(peek(2))) ||
             (peek() == ':' && at_ > 0 && text_[at_ - 1] == ':' && is_word(peek(1)))) {
        ++at_;
      }
      push(Token::Kind::kDotWord, begin + 1, at_);
    } else if (is_digit(c)) {
      number();
    } else if (c == '"') {
      ++at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') ++at_;
      if (peek() != '"') throw_ptx_error(file_, line_, "string without an end");
      push(Token::Kind::kString, begin + 1, at_);
      ++at_;
    } else if (std::string_view("()[]{},;:+-*/!|@=<>&^~?%").find(c) != std::string_view::npos) {
      ++at_;
      push(Token::Kind::kPunctuation, begin, at_);
    } else {
      throw_ptx_error(file_, line_, "character that starts no PTX token",
                      "byte " + std::to_string(static_cast<unsigned char>(c)));
    }
  }

  void number() {
    const std::size_t begin = at_;
    const char second = peek(1);
    if (peek() == '0' && (second == 'f' || second == 'F')) return hex_float(8, Token::Kind::kFloat32);
    if (peek() == '0' && (second == 'd' || second == 'D')) return hex_float(16, Token::Kind::kFloat64);
    int base = 10;
    if (peek() == '0' && (second == 'x' || second == 'X')) {
      base = 16;
      at_ += 2;
    } else if (peek() == '0' && (second == 'b' || second == 'B')) {
      base = 2;
      at_ += 2;
    }
    const std::size_t digits = at_;
    while (base == 16 ? is_hex(peek()) : is_digit(peek())) ++at_;
    if (base == 10 && (peek() == '.' || peek() == 'e' || peek() == 'E') && decimal_float(begin)) return;
    if (base == 10 && text_[begin] == '0' && at_ - begin > 1) base = 8;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + digits, text_.data() + at_, value, base);
    if (error != std::errc() || end != text_.data() + at_) {
      throw_ptx_error(file_, line_, "malformed integer", std::string(text_.substr(begin, at_ - begin)));
    }
    if (peek() == 'U') ++at_;
    if (is_word(peek()))
      throw_ptx_error(file_, line_, "malformed number", std::string(text_.substr(begin, at_ - begin + 1)));
    push(Token::Kind::kInteger, begin, at_, value);
  }

  void hex_float(std::size_t digits, Token::Kind kind) {
    const std::size_t begin = at_;
    at_ += 2;
    while (is_hex(peek())) ++at_;
    std::uint64_t value = 0;
    std::from_chars(text_.data() + begin + 2, text_.data() + at_, value, 16);
    if (at_ - begin - 2 != digits) {
      throw_ptx_error(file_, line_, "malformed floating-point constant", std::string(text_.substr(begin, at_ - begin)));
    }
    push(kind, begin, at_, value);
  }

  // Reads a decimal constant such as 1.5 or 2.0e-3. Returns false if the dot or the e belongs to something else.
  bool decimal_float(std::size_t begin) {
    std::size_t end = at_;
    if (text_[end] == '.') {
      ++end;
      while (end < text_.size() && is_digit(text_[end])) ++end;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent >= text_.size() || !is_digit(text_[exponent])) return false;
      while (exponent < text_.size() && is_digit(text_[exponent])) ++exponent;
      end = exponent;
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(text_.data() + begin, text_.data() + end, value);
    if (error == std::errc::result_out_of_range) value = 0;
    at_ = end;
    push(Token::Kind::kFloat64, begin, end, std::bit_cast<std::uint64_t>(value));
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex_ptx(std::string_view text, const std::string& file) {
  return Lexer(text, file).run();
}

void throw_ptx_error(const std::string& file, int line, std::string what, std::string found, std::string expected) {
  throw Error(ErrorKind::kInput, {.file = file + ":" + std::to_string(line),
                                  .what = std::move(what),
                                  .found = std::move(found),
                                  .expected = std::move(expected)});
}

}  // namespace fusec::emulator
