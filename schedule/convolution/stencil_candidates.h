// Which way a kernel of windows or of single elements' loops takes, and what that executes: asked by the schedule and
// by the cost model.
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

// Of a kernel of rows or of elements, at most one of them; none where rows are shared out or threads have an element
// each.
struct StencilCandidate {
  std::optional<Kernel> written;  // pointwise
  std::optional<NhwcStencil> channels;
  std::optional<NchwStencil> planes;
  std::optional<SlidingWindow> columns;
};
StencilCandidate find_stencil(const Graph& graph, const Kernel& kernel, KernelForm form, const Target& target);

// Of a product in groups, or of a kernel that would be one if groups were an axis: where that is predicted to be the
// fastest.
std::optional<GroupedImplicitGemm> best_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                              const FormOfKernel& form, const Target& target);

// Instructions that loops of threads execute; nothing where rows are shared out among threads.
std::optional<double> loop_instructions(const Graph& graph, const Kernel& kernel, KernelForm form,
                                        const Target& target);

}  // namespace fusec
