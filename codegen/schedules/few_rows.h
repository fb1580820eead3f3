// A product of a few rows with a large matrix (analysis/few_rows_form.h): a block makes all rows of some columns. Its
// warps go along the depth side by side; each lane loads 16 bytes of the matrix at a time, of several steps ahead, and
// multiplies them on tensor cores as they lie in its registers (dequantized there, where they are codes). At the end
// the warps' sums are added in shared memory, in one order.
#pragma once

#include "analysis/few_rows_form.h"
#include "codegen/kernel_source.h"

namespace fusec {

KernelSource few_rows(const Kernel& kernel, const Product& product, const FewRowsForm& form, const Graph& graph);

}  // namespace fusec
