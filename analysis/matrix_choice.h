// Products in which each row chooses its matrix: as a mixture of experts computes them. The kernel is rewritten so that
// the matrix's number is an axis of its own; a block goes over the matrices that its rows have chosen.
//
//   y[i, n] = sum_k x[i, k] * w[expert(i), k, n]   ->   sum_k x[i, k] * w[e, k, n]  with e = expert(i)
#pragma once

#include <optional>

#include "analysis/products.h"

namespace fusec {

struct ChosenMatrices {
  Kernel kernel;
  MatrixChoice choice;
};

// Nothing where not all sums of the kernel choose by one and the same value.
std::optional<ChosenMatrices> with_matrix_axis(const Kernel& kernel);

}  // namespace fusec
