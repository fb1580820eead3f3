// Collects the patterns that a compilation tries: built-in ones, those of files and those that the library's user
// declares, without disabled ones.
#pragma once

#include "fusec/fusec.h"
#include "schedule/target/target.h"
#include "transforms/patterns/pattern_list.h"

namespace fusec {

// A user's patterns come before built-in ones of equal priority. Throws Error(kInput) for text that is no pattern and
// for two patterns of one name, Error(kUsage) for a disabled pattern that does not exist.
PatternList pattern_list(const Options& options);
// The patterns for this target, with the library calls that the options want. Also throws Error(kUsage) for an unknown
// `gemm`.
PatternList pattern_list(const Options& options, const Target& target);

}  // namespace fusec
