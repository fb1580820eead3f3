// How much code a light kernel is beside others of one launch, by what NVRTC takes for it: in the units of
// schedule/gemm/contraction_code_size.h, 30 ms on a quiet machine.
//
//     pointwise      0.2, where something changes places 0.4, with functions 0.8 more; or by its instructions, where
//                    there are many
//     rows           by its instructions, as often as loops are unrolled, and its reductions, which are more code the
//                    more threads share a row
//
// Of 150 kernels of random graphs it was between half and twice of what NVRTC took.
#pragma once

#include "analysis/kernel/kernel.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/reduction/row_candidates.h"

namespace fusec {

double light_code_size(const RowCandidates& candidates, const Graph& graph);
double light_code_size(const CrossRowReduction& cross_row, const Graph& graph);
// Of any other light kernel.
double light_code_size(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
