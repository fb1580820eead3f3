#include "ir/parse_dim.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "ir/op.h"
#include "ir/spelling.h"
#include "ir/utf8.h"

namespace fusec {
namespace {

// Limits, so that a text of a few bytes cannot make an expression of gigabytes.
constexpr std::size_t kLongestDim = 4096;
constexpr int kDeepestDim = 64;
constexpr std::size_t kMostDimTerms = 256;
constexpr std::size_t kHighestDegree = 32;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::size_t degree(const IndexExpr& e) {
  std::size_t most = 0;
  for (const IndexTerm& term : e.terms()) most = std::max(most, term.factors.size());
  return most;
}

class Parser {
 public:
  Parser(std::string_view text, const SymbolNames& names) : text_(text), names_(names) {}

  Dim parse() {
    if (text_.size() > kLongestDim) too_complicated(fmt::format("{} characters", text_.size()));
    try {
      Dim dim = sum();
      if (peek() != '\0' || at_ < text_.size()) unexpected("an operator or the end");
      return dim;
    } catch (const std::overflow_error&) {
      fail("a dimension overflows 63 bits", in_quotes(text_), "numbers below 2^63");
    }
  }

 private:
  [[noreturn]] void fail(std::string what, std::string found, std::string expected, std::string hint = "") {
    throw OpError{"", std::move(what), std::move(found), std::move(expected), std::move(hint)};
  }

  [[noreturn]] void too_complicated(std::string found) {
    fail("a dimension is too complicated", std::move(found),
         fmt::format("at most {} characters, {} terms, degree {} and {} levels", kLongestDim, kMostDimTerms,
                     kHighestDegree, kDeepestDim));
  }

  [[noreturn]] void unexpected(std::string expected) {
    std::string found = in_quotes(text_);
    if (at_ >= text_.size())
      found += ", which ends too early";
    else
      found +=
          fmt::format(" with {} at position {}", in_quotes(text_.substr(at_, character_length(text_, at_))), at_ + 1);
    fail("a dimension is not an expression", std::move(found), std::move(expected));
  }

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(std::string_view token) {
    peek();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  void demand(std::string_view token) {
    if (!take(token)) unexpected(in_quotes(token));
  }

  // Checks the size before multiplying: the product may have as many terms as the product of the operands' term counts.
  Dim times(const Dim& a, const Dim& b) {
    const std::size_t terms = (a.terms().size() + 1) * (b.terms().size() + 1);
    if (terms > kMostDimTerms) too_complicated(fmt::format("{} terms", terms));
    if (degree(a) + degree(b) > kHighestDegree) too_complicated(fmt::format("degree {}", degree(a) + degree(b)));
    return a * b;
  }

  // The divisor must not be zero for any value of the symbols.
  Dim divisor() {
    peek();
    const std::size_t from = at_;
    Dim d = factor();
    const Range range = range_of(d, {names_.symbols(), {}, {}});
    if (range.min <= 0 && range.max >= 0)
      fail("a dimension divides by what may be 0", in_quotes(text_.substr(from, at_ - from)),
           "a divisor that the bounds keep from 0");
    return d;
  }

  Dim sum() {
    Dim left = product();
    for (;;) {
      if (take("+"))
        left = left + product();
      else if (take("-"))
        left = left - product();
      else
        return left;
      if (left.terms().size() > kMostDimTerms) too_complicated(fmt::format("{} terms", left.terms().size()));
    }
  }

  Dim product() {
    Dim left = factor();
    for (;;) {
      if (take("*"))
        left = times(left, factor());
      else if (take("//"))
        left = floor_div(left, divisor());
      else if (take("%"))
        left = floor_mod(left, divisor());
      else
        return left;
    }
  }

  Dim factor() {
    if (++depth_ > kDeepestDim) too_complicated(fmt::format("{} levels", depth_));
    Dim value = primary();
    --depth_;
    return value;
  }

  Dim primary() {
    const char c = peek();
    if (take("-")) return -factor();
    if (take("(")) {
      Dim inner = sum();
      demand(")");
      return inner;
    }
    if (is_digit(c)) return integer();
    if (is_letter(c)) return symbol();
    unexpected("an integer, a symbol or \"(\"");
  }

  Dim integer() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("a dimension overflows 63 bits", in_quotes(text_), "numbers below 2^63");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && is_letter(text_[at_])) unexpected("an operator or the end");
    return value;
  }

  Dim symbol() {
    const std::size_t from = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(from, at_ - from);
    if ((name == "min" || name == "max") && take("(")) {
      const Dim a = sum();
      demand(",");
      const Dim b = sum();
      demand(")");
      return name == "min" ? min(a, b) : max(a, b);
    }
    if (const std::uint32_t* id = names_.find(name)) return Dim::symbol(*id);
    std::vector<std::string_view> known;
    std::vector<std::string> list;
    for (const Symbol& s : names_.symbols()) known.push_back(s.name), list.push_back(in_quotes(s.name));
    fail("undeclared symbol", in_quotes(name), list.empty() ? "an entry in /symbols" : "one of " + listed(list),
         did_you_mean(name, known));
  }

  std::string_view text_;
  const SymbolNames& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

SymbolNames::SymbolNames(Symbols symbols) : symbols_(std::move(symbols)) {
  for (std::uint32_t id = 0; id < symbols_.size(); ++id) ids_.emplace(symbols_[id].name, id);
}

const std::uint32_t* SymbolNames::find(std::string_view name) const {
  const auto it = ids_.find(name);
  return it == ids_.end() ? nullptr : &it->second;
}

bool is_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  for (const char c : text)
    if (!is_letter(c) && !is_digit(c)) return false;
  return true;
}

Dim parse_dim(std::string_view text, const SymbolNames& names) {
  return Parser(text, names).parse();
}

}  // namespace fusec
