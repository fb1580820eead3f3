// Products whose factors are gathered by a table (analysis/convolution_form.h): convolutions as matrix
// products, and products of awkward sizes. The pipeline, the fragments and the end are those of codegen/schedules/gemm.
//
//   before the loop      a table of what each step of the depth adds to a position; each thread has one line of the
//                        gathered tile, and the bits of the taps that are inside there
//   channels last        16 bytes at a time are copied asynchronously, a few lines by a thread; zeros where a tap is
//                        outside (convolution_tiles)
//   8 and 16 bits        elements are loaded a step ahead into registers, and stored to the tile 16 bytes at a time
//   float32              are copied asynchronously, each for itself
//
// Several sums over one space are made one after the other (convolution_loop), and wait in registers.
#pragma once

#include <span>
#include <vector>

#include "analysis/convolution_form.h"
#include "codegen/kernel_source.h"

namespace fusec {

// `forms`: of each sum, with equal tiles (JoinedConvolutions).
std::vector<KernelSource> convolution(const Kernel& kernel, const Product& product,
                                      std::span<const ConvolutionForm> forms, const Graph& graph);

}  // namespace fusec
