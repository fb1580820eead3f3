// A line buffer for the host part, and model text as C literals.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace fusec {

class HostText {
 public:
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... arguments) {
    text_ += fmt::format(format, std::forward<T>(arguments)...);
    text_ += '\n';
  }
  void append(std::string_view text) { text_ += text; }
  std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};

// A C string literal with any text.
std::string string_literal(std::string_view text);
// A short form of a value's name for messages, sanitized like a comment.
std::string shown(std::string_view text);

}  // namespace fusec
