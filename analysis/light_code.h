// How much code a light kernel is beside others of one launch, by what NVRTC takes for it: in the units of
// analysis/product_code.h, 30 ms on a quiet machine.
//
//     pointwise                        0.2, where something changes places 0.4
//     rows                             0.3 for each reduction and for what is computed of them; 0.15 for each tensor
//                                      beside the first; where columns are reduced 1.1 more
//     functions                        0.4
#pragma once

#include "analysis/kernel_forms.h"

namespace fusec {

// Pointwise or of rows.
double light_code(const Kernel& kernel, KernelForm form, const Graph& graph);

}  // namespace fusec
