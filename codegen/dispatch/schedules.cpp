#include "codegen/dispatch/schedules.h"

#include <memory>
#include <variant>

#include "codegen/access/direct.h"
#include "codegen/attention/attention.h"
#include "codegen/convolution/convolution.h"
#include "codegen/convolution/grouped_implicit_gemm.h"
#include "codegen/convolution/nchw_stencil.h"
#include "codegen/convolution/nhwc_stencil.h"
#include "codegen/convolution/sliding_window.h"
#include "codegen/expr/parameter_table.h"
#include "codegen/gemm/contraction.h"
#include "codegen/gemm/gemm.h"
#include "codegen/gemm/skinny_gemm.h"
#include "codegen/gemm/split_k.h"
#include "codegen/movement/pointwise.h"
#include "codegen/reduction/row_reduction.h"
#include "codegen/wgmma/gemm_warpgroup.h"
#include "schedule/plan/kernel_planner.h"

namespace fusec {
namespace {

// A GEMM by warp-level MMA tiles. Split-K adds a kernel that reduces the partial accumulators.
std::vector<KernelSource> mma_sync_gemm(const Kernel& kernel, const Contraction& contraction, const GemmForm& form,
                                        const Graph& graph) {
  std::vector<KernelSource> sources{emit_gemm(kernel, contraction, form, graph)};
  const GemmTiles& t = form.tiles;
  if (t.split_k > 1)
    sources.push_back(emit_split_k_reduction(
        kernel, contraction, form, SplitKPartials(t.split_k, contraction, kernel.pool, t.rows, t.columns), graph));
  return sources;
}

std::vector<KernelSource> wgmma_gemm(const KernelPlanner& of, const WarpgroupPlan& plan) {
  const WarpgroupPart part{of.shaped(), plan.form.contraction ? *plan.form.contraction : *of.form().contraction,
                           plan.form};
  std::vector<KernelSource> sources{gemm_warpgroup({&part, 1}, of.graph(), of.target())};
  const WarpgroupTiles& t = part.form.tiles;
  if (t.split_k == 1) return sources;
  GemmForm form = plan.by_warps;
  form.tiles.columns = t.columns;
  const SplitKPartials split_k(t.split_k, part.contraction, part.kernel.pool, t.rows() * t.cluster, t.columns);
  sources.push_back(emit_split_k_reduction(part.kernel, part.contraction, form, split_k, of.graph()));
  return sources;
}

// Emits what is planned of a kernel. Each detail of a plan has its emitter.
struct Emission {
  const KernelPlanner& of;
  ScheduleChoice& choice;

  std::vector<KernelSource> operator()(const DirectPlan&) const {
    return {direct(of.kernel(), of.graph(), of.target())};
  }
  std::vector<KernelSource> operator()(const PointwisePlan& plan) const {
    if (plan.windows && !coarsens_in_vectors(of.kernel(), of.graph(), of.target()))
      return {emit_sliding_window(*plan.windows, of.graph())};
    return {pointwise(of.kernel(), of.graph(), of.target(), choice)};
  }
  std::vector<KernelSource> operator()(const std::shared_ptr<const StencilCandidate>& plan) const {
    if (plan->channels) return {emit_nhwc_stencil(of.kernel(), *plan->channels, of.graph())};
    if (plan->written) return {pointwise(*plan->written, of.graph(), of.target(), choice)};
    if (plan->planes) return {emit_nchw_stencil(of.kernel(), *plan->planes, of.graph())};
    return {emit_sliding_window(*plan->columns, of.graph())};
  }
  std::vector<KernelSource> operator()(const std::shared_ptr<const GroupedImplicitGemm>& plan) const {
    return {emit_grouped_implicit_gemm(of.kernel(), *plan, of.graph())};
  }
  std::vector<KernelSource> operator()(const RowPlan& plan) const {
    if (auto sources = row_reduction(*plan.candidates, plan.taken, of.kernel(), of.graph(), of.target());
        !sources.empty())
      return sources;
    return (*this)(DirectPlan{});
  }
  std::vector<KernelSource> operator()(const SkinnyGemmForm& plan) const {
    return {emit_skinny_gemm(of.shaped(), contraction(), plan, of.graph())};
  }
  std::vector<KernelSource> operator()(const Gemv& plan) const {
    const ContractionMatch& match = plan.answer;
    return {emit_skinny_gemm(match.kernel ? *match.kernel : of.kernel(), *match.contraction, plan.form, of.graph())};
  }
  std::vector<KernelSource> operator()(const GemmForm& plan) const {
    return mma_sync_gemm(of.shaped(), contraction(), plan, of.graph());
  }
  std::vector<KernelSource> operator()(const ConvolutionForm& plan) const {
    return emit_convolution(of.shaped(), contraction(), {&plan, 1}, of.graph());
  }
  std::vector<KernelSource> operator()(const JoinedConvolutions& plan) const {
    return emit_convolution(of.shaped(), contraction(), plan.forms, of.graph());
  }
  std::vector<KernelSource> operator()(const WarpgroupPlan& plan) const { return wgmma_gemm(of, plan); }
  std::vector<KernelSource> operator()(const ContractionPlan&) const {
    return {emit_contraction(of.shaped(), contraction(), of.graph())};
  }
  std::vector<KernelSource> operator()(const RowGemmPlan& plan) const {
    const RowGemm& rows = *of.form().row_gemm;
    return {plan.pipelined ? emit_pipelined_row_gemm(rows, *plan.pipelined, of.graph())
                           : emit_row_gemm(rows, of.graph())};
  }
  std::vector<KernelSource> operator()(const AttentionCandidates& plan) const {
    return attention(*of.form().attention, plan, of.graph(), of.target());
  }

 private:
  const Contraction& contraction() const { return *of.form().contraction; }
};

}  // namespace

std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target, FormMemory& forms,
                                   const std::string& wanted) {
  const std::shared_ptr<const FormOfKernel> form = forms.of(kernel);
  const KernelPlanner planner(kernel, *form, graph, target);
  KernelPlan plan = planner.plan(wanted);
  std::vector<KernelSource> sources = std::visit(Emission{planner, plan.choice}, plan.detail);
  for (KernelSource& source : sources) source.tuning.candidates = plan.choice.candidates();
  return sources;
}

std::optional<KernelSource> schedule_together(std::span<const Kernel* const> kernels, const Graph& graph,
                                              const Target& target, FormMemory& forms) {
  std::vector<std::shared_ptr<const FormOfKernel>> of_kernels;
  std::vector<KernelPlanner> planners;
  for (const Kernel* kernel : kernels) {
    of_kernels.push_back(forms.of(*kernel));
    planners.emplace_back(*kernel, *of_kernels.back(), graph, target);
  }
  const std::vector<WarpgroupGemmForm> wide = multiplied_together(planners);
  if (wide.empty()) return std::nullopt;
  std::vector<WarpgroupPart> parts;
  for (std::size_t i = 0; i < planners.size(); ++i)
    parts.push_back({planners[i].shaped(), *planners[i].form().contraction, wide[i]});
  KernelSource source = gemm_warpgroup(parts, graph, target);
  if (parameter_bytes(source.parameters) > static_cast<std::size_t>(kMaxParameterBytes) ||
      !source.table_parameters.empty())
    return std::nullopt;
  return source;
}

}  // namespace fusec
