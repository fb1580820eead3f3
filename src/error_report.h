// How the programs show an error: the message, where it is in the file, that line with a caret below; or as JSON.
//
//   error: m.json#/nodes/1/op: unknown op: found "swish", expected an op of the table, ... (hint: did you mean "silu"?)
//     at m.json:6:28, node "act"
//      6 |     {"name": "act", "op": "swish", "inputs": ["gate"]},
//        |                           ^^^^^^^
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "ir/error.h"

namespace fusec {

// The text of a file that an error names; nothing where it cannot be read (again).
using FileText = std::function<std::optional<std::string>(const std::string& file)>;

struct ErrorStyle {
  bool colored = false;
  std::size_t width = 100;  // columns of the terminal
};

// Without "error: " where it begins.
std::string error_text(const Error& error, const FileText& text_of, const ErrorStyle& style);

// {"errors": [{"kind", "message", "file", "line", "column", "element", "pointer", "what", ...}], "exit_status": 1}
std::string errors_json(std::span<const Error> errors, const FileText& text_of);

}  // namespace fusec
