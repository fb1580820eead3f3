// Which results of a kernel may lie where one of its operands lies: every element of the result is stored by the thread
// that alone loads the operand's element in the same place, and that loads before it stores. A pointwise kernel does.
//
//   out[i, j] = exp(x[i, j]) + bias[j]     out may lie in x's place
//   out[i, j] = x[j, i]                    not: who stores out[0, 1] overwrites what another thread reads
#pragma once

#include <vector>

#include "analysis/kernel.h"
#include "codegen/kernel_source.h"

namespace fusec {

// Pairs of parameters of `source`, which was made of `kernel`.
std::vector<KernelSource::InPlace> find_in_place(const Kernel& kernel, const Graph& graph, const KernelSource& source);

// The compiler is no longer told that these two parameters of the kernel point to memory of their own.
void let_alias(KernelSource& source, const KernelSource::InPlace& pair);

}  // namespace fusec
