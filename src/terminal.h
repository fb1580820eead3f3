// Properties of the terminal on standard error.
#pragma once

#include <cstddef>
#include <string>

namespace fusec {

bool is_terminal();

// `choice` is the value of --color: always, never, or auto (on a terminal, unless NO_COLOR is set or TERM is dumb).
bool wants_color(const std::string& choice);

// The terminal's columns, or those of the variable COLUMNS; 0 where neither says.
std::size_t known_terminal_width();

// The terminal's columns. Without a terminal the variable COLUMNS, or 100.
std::size_t terminal_width();

}  // namespace fusec
