#include "codegen/host/host_text.h"

#include "codegen/expr/identifiers.h"

namespace fusec {

std::string string_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?')
      out += std::string("\\") + c;
    else if (byte < 0x20 || byte >= 0x7f)
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string shown(std::string_view text) {
  return comment_text(text, 48);
}

}  // namespace fusec
