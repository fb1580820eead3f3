// Selects who multiplies matrices (--gemm). Patterns that become library calls are tried only if the user wants them,
// and match only where the library computes what the nodes compute.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "schedule/target/target.h"
#include "transforms/patterns/pattern_list.h"

namespace fusec {

enum class Gemm : std::uint8_t {
  kBuiltin,   // generated kernels only
  kCublasLt,  // cuBLASLt wherever it can compute the nodes
  kAuto,      // cuBLASLt where it is predicted to be faster
};
std::optional<Gemm> parse_gemm(std::string_view text);

// The patterns, where library patterns check schedule/lowering/cublaslt_call.h. Under kBuiltin the built-in library
// patterns are left out, and the user's refuse every match with a reason.
PatternList with_library_patterns(PatternList patterns, Gemm gemm, const Target& target, bool round_intermediates);

}  // namespace fusec
