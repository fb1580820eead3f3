// Lines of the host part as they are written, and model text as C literals in it.
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

// A C string literal of any text.
std::string string_literal(std::string_view text);
// The name of a value in a message: cleaned as a comment is, short.
std::string shown(std::string_view text);

}  // namespace fusec
