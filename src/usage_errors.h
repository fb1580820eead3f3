// Errors of the command line in the project's words: what CLI11 refuses as an Error with parts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace fusec {

// The first words of `fusec` that are no model: "diff", "doctor".
std::span<const std::string_view> commands();

// Whether `word` is one of them.
bool is_command(std::string_view word);

Error usage_error(const CLI::App& app, const CLI::ParseError& error);

// Parses options that do not stand on a program's own command line. Throws Error(kUsage).
void parse_options(CLI::App& app, std::vector<std::string> options);

}  // namespace fusec
