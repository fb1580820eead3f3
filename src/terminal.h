// What a program knows of the terminal that its standard error goes to, if it does.
#pragma once

#include <cstddef>
#include <string>

namespace fusec {

bool is_terminal();

// `choice` is --color's: always, never, or auto: on a terminal, unless NO_COLOR is set.
bool wants_color(const std::string& choice);

// Columns: the terminal's; elsewhere COLUMNS, or 100.
std::size_t terminal_width();

}  // namespace fusec
