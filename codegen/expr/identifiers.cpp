#include "codegen/expr/identifiers.h"

#include <algorithm>

#include "ir/library_symbols.h"
#include "ir/reserved_words.h"
#include "ir/spelling.h"

namespace fusec {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

std::string clean_identifier(std::string_view text, std::size_t longest) {
  std::string id;
  for (const char c : text) {
    if (id.size() >= longest) break;
    if (is_letter(c) || is_digit(c)) {
      if (id.empty() && is_digit(c)) id += 'x';
      id += c;
    } else if (!id.empty() && id.back() != '_') {
      id += '_';
    }
  }
  while (!id.empty() && id.back() == '_') id.pop_back();
  if (id.empty()) return "x";
  // All-capital names are usually macros (INT_MAX).
  if (id.size() > 1 && std::none_of(id.begin(), id.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
    for (char& c : id)
      if (is_letter(c)) c = static_cast<char>(c - 'A' + 'a');
  return is_reserved_word(id) ? id + "_v" : id;
}

std::string model_identifier(std::string_view model_name) {
  constexpr std::size_t kLongest = 64;
  std::string id = clean_identifier(model_name, kLongest);
  // The functions that codegen/host/emit_header declares.
  for (const std::string_view function :
       {"create", "destroy", "error", "launch", "prepare", "prepared_bytes", "workspace_bytes"})
    if (std::ranges::binary_search(library_symbols(), id + "_" + std::string(function))) return id + "_v";
  return id;
}

std::string comment_text(std::string_view text, std::size_t longest) {
  std::string line;
  for (const char c : text) {
    if (line.size() >= longest) return line + "...";
    // Prevents "*/", "/*", the "??" of a trigraph and a line-joining backslash.
    const bool printable = c >= ' ' && c <= '~' && c != '\\';
    const bool forbidden = !line.empty() && ((line.back() == '*' && c == '/') || (line.back() == '/' && c == '*') ||
                                             (line.back() == '?' && c == '?'));
    if (forbidden) line += ' ';
    line += printable ? c : '.';
  }
  return line;
}

std::string UniqueNames::take(std::string_view preferred_name) {
  const std::string base = clean_identifier(preferred_name);
  auto [it, fresh] = taken_.try_emplace(base, 1);
  if (fresh && !is_reserved_(base)) return base;
  for (;;) {
    const std::string name = base + "_" + std::to_string(++it->second);
    if (!is_reserved_(name) && taken_.try_emplace(name, 1).second) return name;
  }
}

}  // namespace fusec
