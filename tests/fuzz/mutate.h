// Mutations that know PTX a little: words, operands and whole lines are exchanged, so that many results still parse.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace fusec::emulator::fuzzing {

// One to six edits of `text`; pieces come from itself and from `others`.
std::string mutate(std::string text, const std::vector<std::string>& others, std::mt19937& random);

}  // namespace fusec::emulator::fuzzing
