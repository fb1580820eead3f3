#include "boundary.h"

#include <fmt/format.h>

#include <utility>

#include "ir/json_location.h"
#include "ir/text_location.h"
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

Error with_place(const Error& error, std::string_view json) {
  Error::Parts parts = error.parts();
  const bool is_json = json.substr(0, json.find_first_not_of(" \t\r\n") + 1).ends_with('{');
  if (!is_json || parts.line > 0 || parts.pointer.empty()) return error;
  const TextLocation place = place_of(json, fault_in_json(json, parts.pointer, parts.found).begin);
  parts.line = place.line;
  parts.column = place.column;
  return {error.kind(), std::move(parts)};
}

Error error_of(const OpError& error) {
  return {ErrorKind::kInput,
          {.what = (error.place.empty() ? "" : error.place + ": ") + error.what,
           .found = error.found,
           .expected = error.expected,
           .hint = error.hint}};
}

}  // namespace fusec
