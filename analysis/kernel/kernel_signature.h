// A text that is equal for kernels that differ in names only. Repeated layers of a model share their code through it.
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"

namespace fusec {

struct KernelSignature {
  std::string text;  // equal if the kernels can share code
  // The kernel's tensors in an order given by `text`: the i-th tensor of one kernel corresponds to the i-th of another.
  std::vector<ValueId> tensors;
};

KernelSignature signature_of(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
