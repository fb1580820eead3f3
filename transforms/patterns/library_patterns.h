// Selects who multiplies matrices (--gemm). Patterns that become library calls are tried only if the user wants them,
// and match only where the library computes what the nodes compute.
#pragma once

#include <string_view>

#include "schedule/target/target.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

enum class Gemm : std::uint8_t {
  kBuiltin,   // generated kernels only
  kCublasLt,  // cuBLASLt wherever it can compute the nodes
  kAuto,      // cuBLASLt where it is predicted to be faster
};
std::optional<Gemm> parse_gemm(std::string_view text);

// Lets library patterns check schedule/lowering/cublaslt_call.h. Under kBuiltin removes the built-in library patterns,
// and makes the user's refuse every match with a reason.
void choose_library_patterns(std::vector<FusionPattern>& patterns, Gemm gemm, const Target& target,
                             bool round_intermediates);

}  // namespace fusec
