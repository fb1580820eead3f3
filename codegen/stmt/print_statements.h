// Prints statements: two spaces for each body around them, and lines of at most so many columns.
//
//   const bool here = first < rows && second < columns &&
//       third < planes;
#pragma once

#include <string>

#include "codegen/stmt/statement.h"

namespace fusec {

// `depth`: bodies around the statements. `columns`: where longer lines are broken; 0: nowhere. Lines that schedules
// printed themselves are never broken.
std::string print_statements(const Statements& statements, int depth, std::size_t columns = 0);

}  // namespace fusec
