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

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/skinny_gemm_form.h"
#include "schedule/target/target.h"

namespace fusec {

// Of what is compiled as one: about 300 ms together with what any kernel takes.
inline constexpr double kMaxCodeSize = 7.9;

struct ContractionCodeSize {
  double own = 0;
  double in_wide = 0;  // more, in a launch that has wide tiles
  double wide = 0;     // of wide tiles, once a launch

  double sum() const { return own + wide + (wide > 0 ? in_wide : 0); }
  ContractionCodeSize beside(const ContractionCodeSize& other) const {
    return {own + other.own, in_wide + other.in_wide, wide > 0 ? wide : other.wide};
  }
};

// Of a kernel that is a product, as its form has it.
ContractionCodeSize skinny_gemm_code_size(const Kernel& kernel, const Contraction& product, const SkinnyGemmForm& form);
ContractionCodeSize contraction_code_size(const Graph& graph, const Kernel& shaped, const Contraction& product,
                                          const Target& target);

// Are the sums of a kernel more than it should have, as far as their factors tell? Two never are.
bool exceeds_code_size(const ExprPool& pool, const Contraction& product);

}  // namespace fusec
