// How much code a light kernel is beside others of one launch, by what NVRTC takes for it: in the units of
// analysis/product_code.h, 30 ms on a quiet machine.
//
//     pointwise      0.2, where something changes places 0.4, with functions 0.8 more; or by its instructions, where
//                    there are many
//     rows           by its instructions, as often as loops are unrolled, and its reductions, which are more code the
//                    more threads share a row
//
// Of 150 kernels of random graphs it was between half and twice of what NVRTC took.
#pragma once

#include "analysis/column_folds.h"
#include "analysis/kernel.h"
#include "analysis/row_ways.h"

namespace fusec {

double light_code(const RowWays& ways, const Graph& graph);
double light_code(const ColumnFolds& folds, const Graph& graph);
// Of any other light kernel.
double light_code(const Kernel& kernel, const Graph& graph);

}  // namespace fusec
