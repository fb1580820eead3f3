// The patterns that a compilation tries: the built-in ones, those of files, those that the library's user declares,
// without the disabled ones.
#pragma once

#include "fusec/fusec.h"
#include "schedule/target/target.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

// A user's patterns come before built-in ones of equal priority. Throws Error(kInput) for a file or a text that is no
// pattern and for two patterns of one name, Error(kUsage) for a disabled pattern that there is not.
PatternList pattern_list(const Options& options);
// Those that a compilation for this target tries: with the calls of libraries that the options want. Throws
// Error(kUsage) for an unknown `gemm` as well.
PatternList pattern_list(const Options& options, const Target& target);

}  // namespace fusec
