// Errors of the command line in the project's words: what CLI11 refuses as an Error with parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace fusec {

// Whether `word` is a command of fusec, as "diff" or "doctor", and no model.
bool is_command(std::string_view word);

Error usage_error(const CLI::App& app, const CLI::ParseError& error);

// Parses options that do not stand on a program's own command line. Throws Error(kUsage).
void parse_options(CLI::App& app, std::vector<std::string> options);

}  // namespace fusec
