// The one door through which names of a model reach emitted source: as identifiers, and as text of comments. A name is
// any UTF-8 text (quotes, newlines, comment ends, trigraphs, a megabyte of it), and nothing of it may act as code.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fusec {

// Letters, digits and single underscores, not starting with a digit, at most `longest` characters, never empty, never
// a word that C++ or CUDA knows: "2nd layer!" becomes "x2nd_layer".
std::string clean_identifier(std::string_view text, std::size_t longest = 48);

// One line of printable ASCII that cannot end a comment, continue a line or be a trigraph; cut at `longest`.
std::string comment_text(std::string_view text, std::size_t longest = 80);

// Hands out each identifier once: "act", "act_2", "act_3". A scope of names, within another one perhaps, whose names it
// does not hand out again; that one outlives it and changes no more.
class UniqueNames {
 public:
  UniqueNames() = default;
  explicit UniqueNames(const UniqueNames* outer) : outer_(outer) {}
  std::string take(std::string_view preferred_name);  // cleans the wish

 private:
  const UniqueNames* outer_ = nullptr;
  std::map<std::string, int, std::less<>> taken_;  // base -> last suffix
};

}  // namespace fusec
