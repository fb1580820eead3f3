// GEMV: each result is the sum of a matrix row times a vector. The matrix is the right operand, and the vector the only
// row of the left one, so that the skinny GEMM can compute it (schedule/gemm/skinny_gemm_form).
#pragma once

#include <optional>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/skinny_gemm_form.h"

namespace fusec {

struct Gemv {
  ContractionMatch answer;  // its product refers to answer.kernel if that is set
  SkinnyGemmForm form;
};

std::optional<Gemv> find_gemv(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
