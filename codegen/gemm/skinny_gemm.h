// Emits skinny GEMMs (schedule/gemm/skinny_gemm_form.h). A block computes all rows of some columns, and its warps split
// K. Each lane loads 16 bytes of the matrix at a time, several steps ahead, and tensor cores multiply them directly
// from its registers (after dequantization if needed). At the end the warps' accumulators are added in shared memory,
// in a fixed order.
#pragma once

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/skinny_gemm_form.h"

namespace fusec {

KernelSource emit_skinny_gemm(const Kernel& kernel, const Contraction& contraction, const SkinnyGemmForm& form,
                              const Graph& graph);

}  // namespace fusec
