#include "ir/json_scanner.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "ir/budget.h"

namespace fusec {
namespace {

// Characters that end a run of plain characters in a string.
constexpr std::array<bool, 256> kEndsRun = [] {
  std::array<bool, 256> ends{};
  for (std::size_t c = 0; c < 0x20; ++c) ends[c] = true;
  ends['"'] = ends['\\'] = true;
  return ends;
}();

void append_utf8(std::string& text, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { text += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

class Scanner {
 public:
  Scanner(std::string_view text, JsonBuilder& builder)
      : at_(text.data()), end_(text.data() + text.size()), builder_(builder) {}

  bool run() {
    skip_blanks();
    if (!value()) return false;
    while (builder_.is_open())
      if (!next()) return false;
    skip_blanks();
    return at_ == end_;
  }

 private:
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!std::string_view(at_, end_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  // In a container: reads its next element or member, or its end.
  bool next() {
    count_step();
    const bool object = builder_.is_in_object();
    skip_blanks();
    if (take(object ? '}' : ']')) {
      builder_.close();
      first_ = false;
      return true;
    }
    if (!first_ && !take(',')) return false;
    skip_blanks();
    if (object) {
      const std::optional<std::string_view> key = string();
      if (!key) return false;
      builder_.key(*key);
      skip_blanks();
      if (!take(':')) return false;
      skip_blanks();
    }
    return value();
  }

  bool value() {
    if (at_ == end_) return false;
    first_ = *at_ == '{' || *at_ == '[';
    switch (*at_) {
      case '{':
        ++at_;
        builder_.open(JsonKind::kObject);
        return true;
      case '[':
        ++at_;
        builder_.open(JsonKind::kArray);
        return true;
      case '"': {
        const std::optional<std::string_view> text = string();
        if (text) builder_.string(*text);
        return text.has_value();
      }
      case 't':
        return take("true") && leaf(JsonKind::kBool, 1);
      case 'f':
        return take("false") && leaf(JsonKind::kBool, 0);
      case 'n':
        return take("null") && leaf(JsonKind::kNull, 0);
      default:
        return number();
    }
  }

  bool leaf(JsonKind kind, std::uint64_t payload) {
    builder_.leaf(kind, payload);
    return true;
  }

  // The result is valid until the next call.
  std::optional<std::string_view> string() {
    if (!take('"')) return std::nullopt;
    const char* begin = at_;
    skip_run();
    if (at_ != end_ && *at_ == '"') return std::string_view(begin, at_++);
    unescaped_.assign(begin, at_);
    while (at_ != end_ && *at_ == '\\') {
      ++at_;
      if (!escape()) return std::nullopt;
      begin = at_;
      skip_run();
      unescaped_.append(begin, at_);
    }
    if (!take('"')) return std::nullopt;
    return unescaped_;
  }
  void skip_run() {
    while (at_ != end_ && !kEndsRun[static_cast<unsigned char>(*at_)]) ++at_;
  }

  bool escape() {
    constexpr std::string_view kWritten = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (at_ == end_) return false;
    const char c = *at_++;
    if (const std::size_t i = kWritten.find(c); i != std::string_view::npos) {
      unescaped_ += kMeant[i];
      return true;
    }
    std::optional<std::uint32_t> code = c == 'u' ? four_digits() : std::nullopt;
    if (!code) return false;
    if (*code >= 0xd800 && *code < 0xe000) {  // a surrogate pair
      const std::optional<std::uint32_t> low = *code < 0xdc00 && take("\\u") ? four_digits() : std::nullopt;
      if (!low || *low < 0xdc00 || *low >= 0xe000) return false;
      code = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
    }
    append_utf8(unescaped_, *code);
    return true;
  }

  std::optional<std::uint32_t> four_digits() {
    std::uint32_t code = 0;
    if (end_ - at_ < 4) return std::nullopt;
    const auto [end, error] = std::from_chars(at_, at_ + 4, code, 16);
    if (error != std::errc() || end != at_ + 4) return std::nullopt;
    at_ += 4;
    return code;
  }

  bool digits() {
    const char* const begin = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != begin;
  }

  bool number() {
    const char* const begin = at_;
    const bool negative = take('-');
    if (!take('0') && !digits()) return false;
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (!digits()) return false;
    }
    if (take('e') || take('E')) {
      whole = false;
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    if (whole && number_of<std::int64_t>(begin, JsonKind::kInteger)) return true;
    if (whole && !negative && number_of<std::uint64_t>(begin, JsonKind::kUnsigned)) return true;
    return number_of<double>(begin, whole ? JsonKind::kHuge : JsonKind::kFloat);
  }

  template <class Number>
  bool number_of(const char* begin, JsonKind kind) {
    Number value{};
    const auto [end, error] = std::from_chars(begin, at_, value);
    return error == std::errc() && end == at_ && leaf(kind, std::bit_cast<std::uint64_t>(value));
  }

  const char* at_;
  const char* const end_;
  JsonBuilder& builder_;
  bool first_ = false;  // the innermost container is empty so far
  std::string unescaped_;
};

}  // namespace

bool scan_json(std::string_view text, JsonBuilder& builder) {
  return Scanner(text, builder).run();
}

}  // namespace fusec
