// A vector times a matrix, that stands as rows: each result is a sum over a row of a matrix, and beside it over a
// vector that all results share. Few-rows products take it (analysis/few_rows_form).
#pragma once

#include <optional>

#include "analysis/few_rows_form.h"
#include "analysis/products.h"

namespace fusec {

struct VectorProduct {
  ProductAnswer answer;  // its product is of answer.kernel, where there is one
  FewRowsForm form;
};

std::optional<VectorProduct> find_vector_product(const Kernel& kernel, const Graph& graph, const Target& target);

}  // namespace fusec
