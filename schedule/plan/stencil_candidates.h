// Selects the stencil of a kernel, and predicts its instructions.
#pragma once

#include <optional>

#include "analysis/kernel/kernel.h"
#include "schedule/convolution/grouped_implicit_gemm.h"
#include "schedule/convolution/nchw_stencil.h"
#include "schedule/convolution/nhwc_stencil.h"
#include "schedule/convolution/sliding_window.h"

namespace fusec {

class KernelPlanner;

// For kernels of the forms `rows` and `elements`. At most one member is set; none if threads share rows, or have one
// element each.
struct StencilCandidate {
  std::optional<Kernel> written;  // unrolled into a pointwise kernel
  std::optional<NhwcStencil> channels;
  std::optional<NchwStencil> planes;
  std::optional<SlidingWindow> columns;
};
StencilCandidate best_stencil(const KernelPlanner& planner);

// For a grouped GEMM, or a kernel that becomes one with a group axis. Nothing unless it is predicted to be the fastest
// candidate.
std::optional<GroupedImplicitGemm> best_grouped_implicit_gemm(const KernelPlanner& planner);

// Instructions of per-thread loops, over all threads. Nothing if threads share rows.
std::optional<double> loop_instructions(const KernelPlanner& planner);

}  // namespace fusec
