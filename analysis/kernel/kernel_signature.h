// Kernels that differ in names alone are one kernel: repeated layers of a model share their code.
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

struct KernelSignature {
  std::string text;              // equal for kernels whose code can be the same
  std::vector<ValueId> tensors;  // the kernel's tensors in an order that follows from `text`: the i-th of one kernel
                                 // takes the place of the i-th of the other
};

KernelSignature signature_of(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
