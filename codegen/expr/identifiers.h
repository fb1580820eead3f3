// Sanitizes model names before they enter emitted source as identifiers or comment text. A name is arbitrary UTF-8 text
// (quotes, newlines, comment ends, trigraphs, a megabyte of it); no part of it may act as code.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fusec {

// An identifier of letters, digits and single underscores. It is never empty, does not start with a digit, has at most
// `longest` characters and is not a reserved word of C++ or CUDA. Example: "2nd layer!" becomes "x2nd_layer".
std::string clean_identifier(std::string_view text, std::size_t longest = 48);

// The prefix of the functions of the emitted file, such as "llama" for llama_create. Not "pthread", since the C library
// has a function pthread_create.
std::string model_identifier(std::string_view model_name);

// One line of printable ASCII, cut at `longest`. It cannot end a comment, continue a line or form a trigraph.
std::string comment_text(std::string_view text, std::size_t longest = 80);

// Hands out each identifier once: "act", "act_2", "act_3". A scope may have an outer scope and then avoids the outer
// names too. The outer scope must outlive the inner one and must not change meanwhile.
class UniqueNames {
 public:
  UniqueNames() = default;
  // Never gives a name for which `is_reserved` holds.
  explicit UniqueNames(bool (*is_reserved)(std::string_view)) : is_reserved_(is_reserved) {}
  std::string take(std::string_view preferred_name);  // cleans the name first

 private:
  bool (*is_reserved_)(std::string_view) = [](std::string_view) { return false; };
  std::map<std::string, int, std::less<>> taken_;  // base -> last suffix
};

}  // namespace fusec
