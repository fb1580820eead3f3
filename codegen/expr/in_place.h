// Finds which results of a kernel may share the buffer of one of its operands. This is safe if the thread that stores
// an element has already loaded the operand's element at the same place and no thread loads that element later. It
// applies to pointwise kernels, GEMM epilogues and row reductions. In a row reduction the threads of a row read the
// whole row before the first of them stores.
//
//   out[i, j] = exp(x[i, j]) + bias[j]              out may share x's buffer
//   out[i, j] = sum_k a[i, k] * b[k, j] + x[i, j]   x's buffer, not a's
//   out[i, j] = exp(x[i, j]) / sum_k exp(x[i, k])   x's buffer
//   new[i] = 0.9 * old[i] + 0.1 * sum_k x[i, k]     old's buffer
//   new[i] = max_k abs(x[i, k] * old[i])            old's buffer, if one block owns the row and keeps old[i]
//   h[i, j] = sin(y[i, j]), z[i, j] = x[i, j] - h[i, j]     h not x's buffer: h may be stored before x is loaded
//   out[i, j] = x[j, i]                             none: the store of out[0, 1] overwrites another thread's operand
#pragma once

#include <span>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/kernel_source.h"

namespace fusec {

// Pairs of parameters of `source` that may share a buffer. `source` implements `kernel`. `alone`: it is the only launch
// of the kernel; otherwise it is one of several, and the last that reads what it stores.
std::vector<KernelSource::InPlace> find_in_place(const Kernel& kernel, const Graph& graph, const KernelSource& source,
                                                 bool alone);

// True if a load's position depends on a loaded value (gather).
bool has_indirect_loads(const Kernel& kernel);

// Removes __restrict__ from these parameters.
void allow_alias(KernelSource& source, std::span<const KernelSource::InPlace> pairs);

}  // namespace fusec
