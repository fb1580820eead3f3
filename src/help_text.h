// --help in groups, fitted to the terminal.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fusec {

// Gives every option its group, and the help its form. Call it when all options are there.
void arrange_help(CLI::App& app);

// The form of an option's value: the choices, none|tvm|full, or what the description begins with, KIND[=FILE]; else
// VALUE.
std::string value_form(const CLI::Option& option);

}  // namespace fusec
