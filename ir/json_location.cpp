#include "ir/json_location.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

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

JsonLocation value_at(std::string_view text, std::size_t at) {
  JsonWalker walker(text, at);
  walker.peek();
  JsonLocation place{.begin = walker.at()};
  walker.skip_value();
  place.end = walker.at();
  return place;
}

std::string decoded(std::string_view quoted) {
  if (quoted.find('\\') == std::string_view::npos && quoted.size() >= 2)
    return std::string(quoted.substr(1, quoted.size() - 2));
  const auto json = nlohmann::json::parse(quoted, nullptr, false);
  return json.is_string() ? json.get<std::string>() : "";
}

// The last member with this key, since the error for a repeated key is about the later one.
std::optional<JsonLocation> member_of(std::string_view text, std::size_t object, std::string_view token) {
  std::optional<JsonLocation> found;
  JsonWalker walker(text, object);
  walker.take('{');
  while (walker.peek() == '"') {
    const std::size_t begin = walker.at();
    walker.skip_value();
    const std::size_t end = walker.at();
    if (!walker.take(':')) break;
    const bool wanted = pointer_token(decoded(text.substr(begin, end - begin))) == token;
    const JsonLocation value = value_at(text, walker.at());
    if (wanted) found = {value.begin, value.end, begin, end};
    walker = JsonWalker(text, value.end);
    if (!walker.take(',')) break;
  }
  return found;
}

std::optional<JsonLocation> element_of(std::string_view text, std::size_t array, std::string_view token) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  JsonWalker walker(text, array);
  walker.take('[');
  for (; index > 0; --index) {
    walker.skip_value();
    if (!walker.take(',')) return std::nullopt;
  }
  if (walker.peek() == ']' || walker.peek() == '\0') return std::nullopt;
  return value_at(text, walker.at());
}

std::string_view first_token(std::string_view& pointer) {
  pointer.remove_prefix(1);
  const std::string_view token = pointer.substr(0, pointer.find('/'));
  pointer.remove_prefix(token.size());
  return token;
}

}  // namespace

JsonLocation find_in_json(std::string_view text, std::string_view pointer) {
  JsonLocation place = value_at(text, 0);
  while (pointer.starts_with('/') && place.begin < text.size()) {
    const std::string_view token = first_token(pointer);
    std::optional<JsonLocation> next;
    if (text[place.begin] == '{') next = member_of(text, place.begin, token);
    if (text[place.begin] == '[') next = element_of(text, place.begin, token);
    if (!next) break;
    place = *next;
  }
  return place;
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
  if (!pointer.starts_with('/')) return "";
  std::string_view rest = pointer;
  const std::string_view list = first_token(rest);
  const auto kind = std::ranges::find(kKinds, list, &std::pair<std::string_view, std::string_view>::first);
  if (kind == kKinds.end() || !rest.starts_with('/')) return "";
  first_token(rest);
  const JsonLocation element = find_in_json(text, pointer.substr(0, pointer.size() - rest.size()));
  if (element.begin >= text.size() || text[element.begin] != '{') return "";
  const std::optional<JsonLocation> name = member_of(text, element.begin, "name");
  if (!name || text[name->begin] != '"') return "";
  return std::string(kind->second) + " " + in_quotes(decoded(text.substr(name->begin, name->end - name->begin)));
}

}  // namespace fusec
