// Who multiplies matrices: patterns that become calls of a library are tried where the user wants them, and match where
// the library computes exactly what the nodes say.
#pragma once

#include <string_view>

#include "schedule/target/target.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

enum class Gemm : std::uint8_t {
  kBuiltin,   // kernels of our own
  kCublasLt,  // cuBLASLt, wherever it can
  kAuto,      // cuBLASLt where that is predicted to take less time
};
std::optional<Gemm> parse_gemm(std::string_view text);

// Patterns of libraries ask schedule/lowering/cublaslt_call. Under kBuiltin the built-in ones are left out, and a
// user's match nothing and say why.
void choose_library_patterns(std::vector<FusionPattern>& patterns, Gemm gemm, const Target& target,
                             bool round_intermediates);

}  // namespace fusec
