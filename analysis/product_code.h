// How much code products are, by what NVRTC takes for it: launches whose kernels stand side by side, and sums that
// stand in one kernel, are bounded by it.
//
//   NVRTC's time, without what it takes for any kernel (60 ms), in units of 30 ms on a quiet machine:
//     a product                      1.5 of few rows, 1.75 of copied tiles, 2.6 where elements are gathered
//     each further sum of it         0.5
//     a float32 sum in lanes         0.55 for each 16 multiply-adds of a thread at a time beyond 16
//     functions behind it            0.35 each, 0.5 at least; of much code (sines, powers) 1 for 25 instructions more,
//                                    12 by warpgroups
//     each further output            0.25
//     a factor that is computed      1.25, by warpgroups 2; where its lines run across the depth 0.5 more, of few
//     rows 3.5 tiles of 256 columns           1.6 once a launch, whose computed factors are 1 more
#pragma once

#include <vector>

#include "analysis/few_rows_form.h"
#include "analysis/kernel_forms.h"
#include "analysis/products.h"
#include "analysis/target.h"
#include "ir/graph.h"

namespace fusec {

// Of what is compiled as one: about 300 ms together with what any kernel takes.
inline constexpr double kMostCode = 7.9;

struct ProductCode {
  double own = 0;
  double in_wide = 0;  // more, in a launch that has wide tiles
  double wide = 0;     // of wide tiles, once a launch

  double sum() const { return own + wide + (wide > 0 ? in_wide : 0); }
  ProductCode beside(const ProductCode& other) const {
    return {own + other.own, in_wide + other.in_wide, wide > 0 ? wide : other.wide};
  }
};

// Of a kernel that is a product: 0 of any other.
ProductCode few_rows_code(const Kernel& kernel, const Product& product, const FewRowsForm& form);
ProductCode product_code(const Graph& graph, const Kernel& kernel, const FormOfKernel& form, const Target& target);

// Are the sums of a kernel more than it should have, as far as their factors tell? Two never are.
bool is_too_much_code(const ExprPool& pool, const Product& product);

}  // namespace fusec
