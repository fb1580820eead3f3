// Other programs that are run: a compiler, Graphviz.
#pragma once

#include <string>
#include <vector>

namespace fusec {

// The program's absolute path, found in the folders of $PATH; "" where it is in none. Folders that count from the
// working directory are not looked into. An absolute path stands for itself; another path with a slash is not found.
std::string find_program(const std::string& name);

// Runs a program by its absolute path and waits for it. What it says goes into the file `output`. Its exit status; -1
// where it could not be started or was ended by a signal.
int run_program(const std::vector<std::string>& command, const std::string& output);

}  // namespace fusec
