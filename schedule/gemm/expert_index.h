// Products in which each row chooses its matrix: as a mixture of experts computes them. The kernel is rewritten so that
// the matrix's number is an axis of its own; a block goes over the matrices that its rows have chosen.
//
//   y[i, n] = sum_k x[i, k] * w[expert(i), k, n]   ->   sum_k x[i, k] * w[e, k, n]  with e = expert(i)
#pragma once

#include <optional>

#include "schedule/gemm/contraction.h"

namespace fusec {

struct ExpertAxisKernel {
  Kernel kernel;
  ExpertIndex expert_index;
};

// Nothing where not all sums of the kernel choose by one and the same value.
std::optional<ExpertAxisKernel> with_expert_axis(const Kernel& kernel);

}  // namespace fusec
