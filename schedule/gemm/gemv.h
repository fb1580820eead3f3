// A vector times a matrix, that stands as rows: each result is a sum over a row of a matrix, and beside it over a
// vector that all results share. Few-rows products take it (schedule/gemm/skinny_gemm_form).
#pragma once

#include <optional>

#include "schedule/gemm/contraction.h"
#include "schedule/gemm/skinny_gemm_form.h"

namespace fusec {

struct Gemv {
  ContractionMatch answer;  // its product is of answer.kernel, where there is one
  SkinnyGemmForm form;
};

std::optional<Gemv> find_gemv(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
