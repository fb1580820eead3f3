// Which results of a kernel may lie where one of its operands lies: whoever stores an element of the result has loaded
// the operand's element in the same place, and nobody loads that from then on. So it is in pointwise kernels, in what
// stands behind a product, and in kernels of rows, where the threads that own a row have read all of it, together,
// before the first of them stores.
//
//   out[i, j] = exp(x[i, j]) + bias[j]              out may lie in x's place
//   out[i, j] = sum_k a[i, k] * b[k, j] + x[i, j]   in x's place, not in a's
//   out[i, j] = exp(x[i, j]) / sum_k exp(x[i, k])   in x's place
//   new[i] = 0.9 * old[i] + 0.1 * sum_k x[i, k]     in old's place, whatever else is made of the rows of x
//   new[i] = max_k abs(x[i, k] * old[i])            in old's place, where one block has the row and keeps old[i]
//   h[i, j] = sin(y[i, j]), z[i, j] = x[i, j] - h[i, j]     h not in x's place: it may be stored before x is loaded
//   out[i, j] = x[j, i]                             not: who stores out[0, 1] overwrites what another thread reads
#pragma once

#include <span>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"

namespace fusec {

// Pairs of parameters of `source`, which was made of `kernel`: alone, or as one of several launches that
// reads what it stores for the last time.
std::vector<KernelSource::InPlace> find_in_place(const Kernel& kernel, const Graph& graph, const KernelSource& source,
                                                 bool alone);

// Is something loaded from places that loaded values say?
bool has_indirect_loads(const Kernel& kernel);

// The compiler is no longer told that these parameters of the kernel point to memory of their own.
void allow_alias(KernelSource& source, std::span<const KernelSource::InPlace> pairs);

}  // namespace fusec
