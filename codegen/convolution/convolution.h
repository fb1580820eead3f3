// Emits convolutions as implicit GEMMs, and GEMMs of unaligned sizes, with operands gathered through a table
// (schedule/gemm/convolution_form.h). Pipeline, fragments and epilogue are those of codegen/gemm/gemm.
//
//   before the K loop    a table with the position offset of each K step; each thread has one line of the gathered
//                        tile and a bit mask of the taps that are inside the image there
//   NHWC                 asynchronous 16-byte copies, a few lines per thread; zeros where a tap is outside
//                        (convolution_tile_loader)
//   8 and 16 bits        elements are loaded into registers one step ahead and stored to the tile 16 bytes at a time
//   float32              one asynchronous copy per element
//
// Several accumulators over one space are computed one after the other and kept in registers.
#pragma once

#include <span>
#include <vector>

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/convolution_form.h"

namespace fusec {

// `forms`: one per accumulator, with equal tiles (JoinedConvolutions).
std::vector<KernelSource> emit_convolution(const Kernel& kernel, const Contraction& contraction,
                                           std::span<const ConvolutionForm> forms, const Graph& graph);

}  // namespace fusec
