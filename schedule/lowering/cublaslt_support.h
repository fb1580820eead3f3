// What cuBLASLt supports of the products that a group may be: the dtypes that it multiplies, their epilogues, and the
// sizes, layouts and alignments that 8-bit operands need.
//
//   float16 @ float16 -> float16 or float32                 any sizes; a bias, an activation
//   float32, float64                                        the same dtype throughout; float64 has no epilogue
//   float8 @ float8   -> float16, bfloat16 or float32       multiples of 16, both factors along k, from sm_89 on
//   int8 @ int8       -> int32                              multiples of 4, both factors along k; no epilogue
#pragma once

#include <string>

#include "schedule/lowering/cublaslt_call.h"

namespace fusec {

bool multiplies_float8(const CublasLtCall& call);

// Returns the arithmetic of a product of operands of this dtype.
CublasLtCompute cublaslt_compute(DType operands);

// Returns "" if cuBLASLt executes the call as the graph means it, else why not. `call` is complete.
std::string why_unsupported(const CublasLtCall& call, const Graph& graph, const Target& target);

}  // namespace fusec
