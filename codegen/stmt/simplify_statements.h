// Simplifies a kernel's statements: no declaration that nothing uses, no second name for a value, no `if (true)`.
//
//   const int line = first + turn;            const int row = first + turn;
//   const int row = line;                ->   y[row] = 0;
//   const int column = row * 3;
//   y[row] = 0;
//
// Declared values have no effects of their own. `wanted` has the names that variables would like to have
// (codegen/stmt/shorten_names); a value with two names gets the later wish.
#pragma once

#include <map>
#include <string>

#include "codegen/stmt/statement.h"

namespace fusec {

void simplify_statements(Statements& statements, std::map<std::string, std::string, std::less<>>& wanted);

}  // namespace fusec
