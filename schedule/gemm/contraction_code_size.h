// Estimates the code size of GEMMs by the time NVRTC needs. It limits horizontal fusion and the number of accumulators
// in one kernel. A unit is 30 ms of NVRTC, beyond the 60 ms that any kernel takes:
//
//     a GEMM                         1.5 skinny, 1.75 with copied tiles, 2.6 with gathered elements
//     each further accumulator       0.5
//     float32 without tensor cores   0.55 per 16 multiply-adds of a thread beyond the first 16
//     epilogue functions             0.35 each, at least 0.5; large ones (sin, pow) 1 per 25 instructions,
//                                    with warpgroups 1 per 12
//     each further output            0.25
//     a transformed operand          1.25, with warpgroups 2; 0.5 more if not K-major, in a skinny GEMM 3.5
//     tiles of 256 columns           1.6 once per launch, and 1 more per transformed operand
#pragma once

#include "analysis/kernel/kernel.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/skinny_gemm_form.h"
#include "schedule/target/target.h"

namespace fusec {

// The limit for one compilation: about 300 ms with the constant part.
inline constexpr double kMaxCodeSize = 7.9;

struct ContractionCodeSize {
  double own = 0;
  double in_wide = 0;  // additional size if the launch has wide tiles
  double wide = 0;     // size of wide tiles, once per launch

  double sum() const { return own + wide + (wide > 0 ? in_wide : 0); }
  ContractionCodeSize alongside(const ContractionCodeSize& other) const {
    return {own + other.own, in_wide + other.in_wide, wide > 0 ? wide : other.wide};
  }
};

// The code size of a skinny GEMM, and of a contraction with the tiles of `gemm`. Null: its elements are loaded one by
// one.
ContractionCodeSize skinny_gemm_code_size(const Kernel& kernel, const Contraction& contraction,
                                          const SkinnyGemmForm& form);
ContractionCodeSize contraction_code_size(const Kernel& shaped, const Contraction& contraction, const GemmForm* gemm,
                                          const Target& target);

// True if the accumulators of a kernel exceed the limit, estimated from the operands alone. Two never do.
bool exceeds_code_size(const ExprPool& pool, const Contraction& contraction);

}  // namespace fusec
