// Gives variables the names that they would like to have, with a number only where two are visible at once.
//
//   for (...) { const int row_2 = ...; }           for (...) { const int row = ...; }
//   for (...) { const int row_3 = ...; }      ->   for (...) { const int row = ...; }
//
// A name depends on the statements around it and on nothing else. Words that the statements use and do not declare
// (functions, types) keep their meaning: no variable gets their name.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/stmt/statement.h"

namespace fusec {

// `parameters` are those of the kernel; they are visible everywhere. `wanted` has the wishes, by the names so far.
// Returns the new names, by the names so far.
std::map<std::string, std::string, std::less<>> shorten_names(
    Statements& statements, const std::vector<std::string>& parameters,
    const std::map<std::string, std::string, std::less<>>& wanted, std::set<std::string, std::less<>> taken);

}  // namespace fusec
