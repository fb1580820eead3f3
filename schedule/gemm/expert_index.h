// Mixture of experts: rewrites GEMMs in which each row chooses its matrix, so that the matrix index is an axis. A block
// then loops over the matrices that its rows choose.
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

// Returns nullopt unless all contractions of the kernel choose by the same value.
std::optional<ExpertAxisKernel> with_expert_axis(const Kernel& kernel);

}  // namespace fusec
