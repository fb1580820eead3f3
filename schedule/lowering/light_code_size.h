// Estimates the code size of a light kernel in a shared launch, as NVRTC's compile time in units of 30 ms (as
// schedule/gemm/contraction_code_size.h does).
//
//     pointwise      0.2; 0.4 if a load is strided; 0.8 more with functions; or by its instructions if these are more
//     rows           instructions times unrolled elements, plus a cost per reduction, by layout
//
// The estimate is within a factor of two for kernels of random graphs.
#pragma once

#include "analysis/kernel/kernel.h"
#include "schedule/lowering/cross_row_reduction.h"
#include "schedule/reduction/row_candidates.h"

namespace fusec {

double light_code_size(const RowCandidates& candidates, const Graph& graph);
double light_code_size(const CrossRowReduction& cross_row, const Graph& graph);
// Estimates any other light kernel.
double light_code_size(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
