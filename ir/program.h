// Finds and runs other programs: a compiler, Graphviz.
#pragma once

#include <string>
#include <vector>

namespace fusec {

// The program's absolute path, from the absolute folders of $PATH; "" if it is in none. Relative folders of $PATH are
// skipped. An absolute `name` is returned as it is; a relative path with a slash is not found.
std::string find_program(const std::string& name);

// Runs a program by its absolute path, waits for it and writes its output into the file `output`. Returns its exit
// status; -1 if it could not be started or was ended by a signal.
int run_program(const std::vector<std::string>& command, const std::string& output);

}  // namespace fusec
