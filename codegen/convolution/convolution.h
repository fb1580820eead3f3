// Products whose factors are gathered by a table (schedule/gemm/convolution_form.h): convolutions as matrix
// products, and products of awkward sizes. The pipeline, the fragments and the end are those of codegen/gemm/gemm.
//
//   before the loop      a table of what each step of the depth adds to a position; each thread has one line of the
//                        gathered tile, and the bits of the taps that are inside there
//   channels last        16 bytes at a time are copied asynchronously, a few lines by a thread; zeros where a tap is
//                        outside (convolution_tile_loader)
//   8 and 16 bits        elements are loaded a step ahead into registers, and stored to the tile 16 bytes at a time
//   float32              are copied asynchronously, each for itself
//
// Several sums over one space are made one after the other (convolution_mainloop), and wait in registers.
#pragma once

#include <span>
#include <vector>

#include "codegen/expr/kernel_source.h"
#include "schedule/gemm/convolution_form.h"

namespace fusec {

// `forms`: of each sum, with equal tiles (JoinedConvolutions).
std::vector<KernelSource> emit_convolution(const Kernel& kernel, const Contraction& product,
                                           std::span<const ConvolutionForm> forms, const Graph& graph);

}  // namespace fusec
