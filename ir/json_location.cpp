#include "ir/json_location.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "ir/spelling.h"
#include "ir/utf8.h"

namespace fusec {
namespace {

// Walks over JSON text value by value; stops early if the text is not JSON.
class JsonWalker {
 public:
  JsonWalker(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  std::size_t at() const { return at_; }

  char peek() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  // Moves past the value's last byte.
  void skip_value() {
    int depth = 0;
    do {
      const char c = peek();
      if (c == '\0') return;
      if (c == '"') {
        skip_string();
      } else if (c == '{' || c == '[') {
        ++depth, ++at_;
      } else if (c == '}' || c == ']') {
        --depth, ++at_;
      } else if (c == ',' || c == ':') {
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of(" \t\r\n,:{}[]\"", at_), text_.size());
      }
    } while (depth > 0);
  }

 private:
  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  std::size_t at_;
};

std::string decoded(std::string_view quoted) {
  if (quoted.find('\\') == std::string_view::npos && quoted.size() >= 2)
    return std::string(quoted.substr(1, quoted.size() - 2));
  const auto json = nlohmann::json::parse(quoted, nullptr, false);
  return json.is_string() ? json.get<std::string>() : "";
}

// Follows the tokens of a JSON pointer in one pass over the text.
class PointerWalk {
 public:
  PointerWalk(std::string_view text, const std::vector<std::string_view>& tokens)
      : text_(text), walker_(text, 0), tokens_(tokens) {
    visit({}, 0);
  }

  // Where the values of the first 0, 1, 2, ... tokens stand, as far as the text has them. Of members with one key the
  // last counts, since the error for a repeated key is about the later one.
  const std::vector<JsonLocation>& found() const { return found_; }

 private:
  // The next value is that of the first `matched` tokens; `key` has where its key stands.
  void visit(JsonLocation key, std::size_t matched) {
    const char first = walker_.peek();
    key.begin = walker_.at();
    found_.resize(matched);
    found_.push_back(key);
    if (matched == tokens_.size() || (first != '{' && first != '[')) {
      walker_.skip_value();
    } else {
      walker_.take(first);
      if (first == '{')
        members(matched);
      else
        elements(matched);
    }
    found_[matched].end = walker_.at();
  }

  void members(std::size_t matched) {
    while (walker_.peek() == '"') {
      JsonLocation key{.key_begin = walker_.at()};
      walker_.skip_value();
      key.key_end = walker_.at();
      if (!walker_.take(':')) return;
      if (pointer_token(decoded(text_.substr(key.key_begin, key.key_end - key.key_begin))) == tokens_[matched])
        visit(key, matched + 1);
      else
        walker_.skip_value();
      if (!walker_.take(',')) break;
    }
    walker_.take('}');
  }

  void elements(std::size_t matched) {
    const std::string_view token = tokens_[matched];
    std::size_t wanted = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), wanted);
    const bool is_index = error == std::errc() && end == token.data() + token.size();
    for (std::size_t index = 0; walker_.peek() != ']' && walker_.peek() != '\0'; ++index) {
      if (is_index && index == wanted)
        visit({}, matched + 1);
      else
        walker_.skip_value();
      if (!walker_.take(',')) break;
    }
    walker_.take(']');
  }

  std::string_view text_;
  JsonWalker walker_;
  const std::vector<std::string_view>& tokens_;
  std::vector<JsonLocation> found_;
};

std::vector<std::string_view> tokens_of(std::string_view pointer) {
  std::vector<std::string_view> tokens;
  while (pointer.starts_with('/')) {
    pointer.remove_prefix(1);
    tokens.push_back(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(tokens.back().size());
  }
  return tokens;
}

}  // namespace

JsonLocation find_in_json(std::string_view text, std::string_view pointer) {
  return PointerWalk(text, tokens_of(pointer)).found().back();
}

JsonLocation fault_in_json(std::string_view text, std::string_view pointer, std::string_view found) {
  const JsonLocation at = find_in_json(text, pointer);
  const bool is_key = at.key_begin < at.key_end && text.substr(at.key_begin, at.key_end - at.key_begin) == found &&
                      text.substr(at.begin, at.end - at.begin) != found;
  return is_key ? JsonLocation{.begin = at.key_begin, .end = at.key_end} : at;
}

std::string named_element(std::string_view text, std::string_view pointer) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kKinds = {
      {{"nodes", "node"}, {"inputs", "input"}, {"constants", "constant"}, {"groups", "group"}}};
  std::vector<std::string_view> tokens = tokens_of(pointer);
  if (tokens.size() < 2) return "";
  const auto kind = std::ranges::find(kKinds, tokens[0], &std::pair<std::string_view, std::string_view>::first);
  if (kind == kKinds.end()) return "";
  tokens.resize(2);
  tokens.push_back("name");
  const std::vector<JsonLocation> found = PointerWalk(text, tokens).found();
  const JsonLocation& name = found.back();
  if (found.size() <= tokens.size() || name.begin >= text.size() || text[name.begin] != '"') return "";
  return std::string(kind->second) + " " + in_quotes(decoded(text.substr(name.begin, name.end - name.begin)));
}

}  // namespace fusec
