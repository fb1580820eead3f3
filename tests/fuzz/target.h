// A fuzz target: one reader of fusec and the inputs to begin with. Each file of targets/ defines both functions; each
// program links one of them, with a driver: mutations.cpp (any compiler) or libfuzzer.cpp (clang).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusec::fuzzing {

// Gives the input to the reader. Returns whether the reader took it. A refusal with fusec::Error may be thrown or
// returned; any other exception, a signal, a sanitizer's report, a hang is a fault.
bool execute(std::string_view input);

// Taken from the repository's own files when the program runs. At least one of them is valid.
std::vector<std::string> seeds();

}  // namespace fusec::fuzzing
