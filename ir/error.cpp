#include "ir/error.h"

namespace fusec {
namespace {

std::string one_line(const Error::Parts& parts) {
  std::string text = parts.file;
  if (!parts.pointer.empty()) text += "#" + parts.pointer;
  if (!text.empty()) text += ": ";
  text += parts.what;
  if (!parts.found.empty()) text += ": found " + parts.found;
  if (!parts.expected.empty()) text += (parts.found.empty() ? ": expected " : ", expected ") + parts.expected;
  if (!parts.hint.empty()) text += " (hint: " + parts.hint + ")";
  return text;
}

}  // namespace

Error::Error(ErrorKind kind, Parts parts)
    : std::runtime_error(one_line(parts)), kind_(kind), parts_(std::move(parts)) {}

}  // namespace fusec
