// Finds the candidates of a kernel on a target: its tiles as a GEMM, its rows, its windows, its work. Each of these
// rungs is found at the first call of its getter and kept with the kernel's form (schedule/kernel_forms.h), which equal
// kernels share (schedule/form_memory.h). The cost model, trial lowering, horizontal fusion, code size and the dispatch
// of emitters read the same rungs.
//
//   KernelPlanner planner(kernel, form, graph, target);
//   if (const GemmForm* gemm = planner.gemm()) ...        // the second planner of an equal kernel only looks it up
//
// A rung depends on the kernel, the types of the loaded tensors, the symbols and the target. The constructor compares
// them, so no rung is stale. A getter returns null where the kernel has no such candidate. Pointers are valid as long
// as the form.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "ir/graph.h"
#include "schedule/cost/work.h"
#include "schedule/gemm/contraction_code_size.h"
#include "schedule/gemm/warpgroup_gemm_form.h"
#include "schedule/kernel_forms.h"
#include "schedule/plan/kernel_plan.h"
#include "schedule/plan/stencil_candidates.h"
#include "schedule/target/target.h"

namespace fusec {

struct PlannedRungs;

class KernelPlanner {
 public:
  // All of them outlive the planner.
  KernelPlanner(const Kernel& kernel, const FormOfKernel& form, const Graph& graph, const Target& target);

  const Kernel& kernel() const { return kernel_; }
  const FormOfKernel& form() const { return form_; }
  const Kernel& shaped() const { return form_.rewritten ? *form_.rewritten : kernel_; }  // form().contraction is of it
  const Graph& graph() const { return graph_; }
  const Target& target() const { return target_; }

  // The kind of kernel that a launch of its own would have: the first rung that takes the kernel.
  KernelKind kind() const;
  // kind_of_tiles: of a contraction that is no skinny GEMM. kind_of_loops: of row reductions and of one thread per
  // element.
  KernelKind kind_of_tiles() const;
  KernelKind kind_of_loops() const;
  // What is emitted. `wanted` is the candidate to take, "" for the best predicted one.
  KernelPlan plan(const std::string& wanted = "") const;

  // Contractions.
  const SkinnyGemmForm* skinny() const;
  const GemmForm* gemm() const;
  const ConvolutionForm* convolution() const;
  const JoinedConvolutions* joined() const;
  double cycles_of_tiles() const;  // predicted of copied tiles by warps; infinite if there are none
  // All tilings by warpgroups, best first, and the best one if it is predicted to be faster than the tiles of warps.
  const std::vector<WarpgroupGemms>& warpgroups() const;
  const WarpgroupGemms* best_warpgroups() const;
  const ContractionCodeSize& code() const;

  // Rows, windows, and one thread per element.
  const Gemv* gemv() const;
  const RowCandidates* rows() const;
  RowLaunch row_launch() const;
  const NchwStencil* planes() const;
  const StencilCandidate& stencil() const;
  const GroupedImplicitGemm* groups() const;

  const GemmForm* pipelined_row_gemm() const;
  const AttentionCandidates& attention() const;

  // The prediction. `seconds_of_form` counts how operands are fetched (schedule/plan/operand_fetch.h).
  const Work& work() const;
  double seconds_of_form() const;

 private:
  const Kernel& kernel_;
  const FormOfKernel& form_;
  const Graph& graph_;
  const Target& target_;
  PlannedRungs* rungs_;  // of this kernel, these tensors and this target
};

// The rows of a kernel, whatever the target.
const RowForm* row_form_of(const Kernel& kernel, const FormOfKernel& form, const Graph& graph);

// One persistent grid of warpgroups that computes the tiles of all these products. Empty if they are no such products,
// or if that is not predicted to be faster.
std::vector<WarpgroupGemmForm> multiplied_together(std::span<const KernelPlanner> planners);

}  // namespace fusec
