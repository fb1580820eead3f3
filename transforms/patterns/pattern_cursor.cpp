#include "transforms/patterns/pattern_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "ir/error.h"
#include "ir/spelling.h"
#include "ir/text_location.h"

namespace fusec {
namespace {

constexpr std::string_view kClauses[] = {"match", "where", "becomes", "escapes", "attributes", "bind_constants"};

}  // namespace

bool is_clause(std::string_view word) {
  return std::ranges::find(kClauses, word) != std::end(kClauses);
}

bool starts_declaration(std::string_view word) {
  return word == "pattern" || word == "define";
}

std::vector<std::string_view> clause_names() {
  return {std::begin(kClauses), std::end(kClauses)};
}

bool PatternCursor::take(char c) {
  if (!is_sign(c)) return false;
  ++at_;
  return true;
}

bool PatternCursor::take_word(std::string_view word) {
  if (!is_word() || peek().text != word) return false;
  ++at_;
  return true;
}

void PatternCursor::demand(char c) {
  if (!take(c)) unexpected(fmt::format("'{}'", c));
}

std::string_view PatternCursor::word(const char* expected) {
  if (!is_word()) unexpected(expected);
  return tokens_[at_++].text;
}

double PatternCursor::number() {
  if (!is_number()) unexpected("a number");
  const std::string digits(tokens_[at_++].text);
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (end != digits.c_str() + digits.size()) fail(at_ - 1, "no number");
  if (std::isinf(value) && !digits.ends_with("inf")) fail(at_ - 1, "a number too large", "one that float64 holds");
  return value;
}

std::int64_t PatternCursor::integer() {
  const std::string_view digits = tokens_[at_++].text;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) fail(at_ - 1, "a number too large", "one that int64 holds");
  if (error != std::errc() || end != digits.data() + digits.size()) fail(at_ - 1, "no number");
  return value;
}

std::int64_t PatternCursor::whole_number() {
  constexpr double kLeast = 1e9;  // least number that is refused
  const std::size_t token = at_;
  const double value = number();
  if (!(std::abs(value) < kLeast) || value != std::floor(value)) fail(token, "no whole number");
  return static_cast<std::int64_t>(value);
}

std::string PatternCursor::text_since(std::size_t offset) const {
  const PatternToken& last = tokens_[at_ - 1];
  const std::size_t end = last.offset + last.text.size() + (last.kind == PatternToken::Kind::kText ? 2 : 0);
  std::string result;
  for (const char c : text_.substr(offset, end - offset)) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank) result += c;
    if (blank && !result.empty() && result.back() != ' ') result += ' ';
  }
  return result;
}

std::size_t PatternCursor::line_of(std::size_t token) const {
  return place_of(text_, tokens_[token].offset).line;
}

void PatternCursor::fail(std::size_t token, std::string what, std::string expected, std::string hint) const {
  const PatternToken& t = tokens_[std::min(token, tokens_.size() - 1)];
  const TextLocation place = place_of(text_, t.offset);
  throw Error(ErrorKind::kInput,
              {.file = file_.empty() ? "built-in patterns" : file_,
               .line = place.line,
               .column = place.column,
               .what = fmt::format("{}: {}", in_words(place), what),
               .found = t.kind == PatternToken::Kind::kEnd ? "the end of the file" : in_quotes(t.text),
               .expected = std::move(expected),
               .hint = std::move(hint)});
}

}  // namespace fusec
