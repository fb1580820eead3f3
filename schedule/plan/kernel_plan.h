// What is decided about a kernel before its text is emitted: a plain value. KernelPlanner::plan()
// (schedule/plan/kernel_planner.h) makes it, and codegen/dispatch/schedules emits it.
//
//   linear, 128 rows, sm_80:  schedule gemm_mma, detail a GemmForm with the tiles taken, choice all tiles that fit
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "analysis/kernel/kernel.h"
#include "schedule/attention/attention_tiles.h"
#include "schedule/convolution/grouped_implicit_gemm.h"
#include "schedule/convolution/sliding_window.h"
#include "schedule/gemm/convolution_form.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/gemm/gemv.h"
#include "schedule/gemm/warpgroup_gemm_form.h"
#include "schedule/plan/kernel_kind.h"
#include "schedule/plan/schedule_choice.h"
#include "schedule/plan/stencil_candidates.h"
#include "schedule/reduction/row_candidates.h"

namespace fusec {

// No reduction. The emitter chooses vectors and staging (codegen/movement/pointwise).
struct PointwisePlan {
  std::optional<SlidingWindow> windows = {};  // taken unless vectors of coarsened threads are better
};

// One of the candidates of a row kernel.
struct RowPlan {
  std::shared_ptr<const RowCandidates> candidates;
  std::size_t taken = 0;
};

struct WarpgroupPlan {
  WarpgroupGemmForm form;
  GemmForm by_warps;  // which reduces the partial accumulators of split-K
};

// The general contraction, of operands with any index.
struct ContractionPlan {};

// Rows of a GEMM, each in one block; with tiles copied in stages, or without.
struct RowGemmPlan {
  std::optional<GemmForm> pipelined;
};

// One thread per element.
struct DirectPlan {};

// Exactly what the emitter of the kind takes besides the kernel. What offers no choice is shared with the planner.
using PlanDetail =
    std::variant<DirectPlan, PointwisePlan, std::shared_ptr<const StencilCandidate>,
                 std::shared_ptr<const GroupedImplicitGemm>, RowPlan, SkinnyGemmForm, Gemv, GemmForm, ConvolutionForm,
                 JoinedConvolutions, WarpgroupPlan, ContractionPlan, RowGemmPlan, AttentionCandidates>;

struct KernelPlan {
  Schedule schedule = {};
  PlanDetail detail = {};
  std::string_view why_not_better = "";      // why the kernel is not of the kind before; "" for the first
  ScheduleChoice choice = ScheduleChoice();  // the candidates' names; of pointwise kernels, known when emitted
};

}  // namespace fusec
