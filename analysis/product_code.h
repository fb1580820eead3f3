// How much code products are, by what NVRTC takes for it: launches whose kernels stand side by side, and sums that
// stand in one kernel, are bounded by it.
//
//   NVRTC's time, without what it takes for any kernel (60 ms), in units of 30 ms on a quiet machine:
//     a product                      1.25 of few rows, 1.75 of copied tiles, 2.6 where elements are gathered
//     each further sum of it         0.5
//     functions behind it            0.5
//     a factor that is computed      1.25, by warpgroups 2; where its lines run across the depth 0.5 more
#pragma once

#include <vector>

#include "analysis/kernel_forms.h"
#include "analysis/products.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

// Of what is compiled as one: about 300 ms together with what any kernel takes.
inline constexpr double kMostCode = 7.9;

// Of a kernel that is a product: 0 of any other.
double product_code(const Graph& graph, const Kernel& kernel, const FormOfKernel& form, const Target& target);

// Are the sums of a kernel more than it should have, as far as their factors tell? Two never are.
bool is_too_much_code(const ExprPool& pool, const Product& product);

}  // namespace fusec
