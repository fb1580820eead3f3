#include "boundary.h"

#include <fmt/format.h>

#include "ir/utf8.h"

namespace fusec {

const std::string& require_utf8(const std::string& text, const std::string& what) {
  const std::size_t bad = first_bad_utf8(text);
  if (bad == text.size()) return text;
  const auto byte = static_cast<unsigned>(static_cast<unsigned char>(text[bad]));
  throw Error(ErrorKind::kUsage, {.what = what + " is not UTF-8",
                                  .found = fmt::format("byte 0x{:02x} at position {}", byte, bad + 1),
                                  .expected = "UTF-8 text"});
}

Error error_of(const OpError& error) {
  return {ErrorKind::kInput,
          {.what = (error.place.empty() ? "" : error.place + ": ") + error.what,
           .found = error.found,
           .expected = error.expected,
           .hint = error.hint}};
}

}  // namespace fusec
