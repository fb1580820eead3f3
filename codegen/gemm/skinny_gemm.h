// A product of a few rows with a large matrix (schedule/gemm/skinny_gemm_form.h): a block makes all rows of some
// columns. Its warps go along the depth side by side; each lane loads 16 bytes of the matrix at a time, of several
// steps ahead, and multiplies them on tensor cores as they lie in its registers (dequantized there, where they are
// codes). At the end the warps' sums are added in shared memory, in one order.
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/skinny_gemm_form.h"

namespace fusec {

KernelSource emit_skinny_gemm(const Kernel& kernel, const Contraction& product, const SkinnyGemmForm& form,
                              const Graph& graph);

}  // namespace fusec
