// Selects the stencil schedule of a kernel, and predicts its instructions. The schedules and the cost model both call
// it.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "schedule/convolution/grouped_implicit_gemm.h"
#include "schedule/convolution/nchw_stencil.h"
#include "schedule/convolution/nhwc_stencil.h"
#include "schedule/convolution/sliding_window.h"
#include "schedule/kernel_forms.h"
#include "schedule/target/target.h"

namespace fusec {

// For kernels of the forms `rows` and `elements`. At most one member is set; none if threads share rows, or have one
// element each.
struct StencilCandidate {
  std::optional<Kernel> written;  // unrolled into a pointwise kernel
  std::optional<NhwcStencil> channels;
  std::optional<NchwStencil> planes;
  std::optional<SlidingWindow> columns;
};
const StencilCandidate& find_stencil(const Graph& graph, const Kernel& kernel, const FormOfKernel& form,
                                     const Target& target);

// For a grouped GEMM, or a kernel that becomes one with a group axis. Nothing unless it is predicted to be the fastest
// candidate.
const std::optional<GroupedImplicitGemm>& best_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                                     const FormOfKernel& form, const Target& target);

// Instructions of per-thread loops, over all threads. Nothing if threads share rows.
std::optional<double> loop_instructions(const Graph& graph, const Kernel& kernel, const FormOfKernel& form,
                                        const Target& target);

}  // namespace fusec
