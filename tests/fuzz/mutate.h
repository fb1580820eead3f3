// Mutations that know text a little: words, numbers, lines and what stands in brackets or quotes are exchanged, so that
// many results still parse as PTX, JSON, patterns or graphs.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace fusec::fuzzing {

// One edit of `text`, or a few; pieces come from itself and from `others`.
std::string mutate(std::string text, const std::vector<std::string>& others, std::mt19937& random);

}  // namespace fusec::fuzzing
