#include "schedule/plan/stencil_candidates.h"

#include <algorithm>
#include <set>

#include "schedule/convolution/find_sliding_window.h"
#include "schedule/plan/kernel_planner.h"
#include "schedule/reduction/unrolled_reductions.h"

namespace fusec {
namespace {

// Instructions per reduced element: address, mask, load, conversion; NHWC windows share most of them. kResult: per
// result, for its position and store.
constexpr double kAlone = 10, kInWindows = 5, kResult = 40;

// The number of reduced elements.
double summed_elements(const Kernel& kernel) {
  double elements = 0;
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel)))
    if (kernel.pool[id].op == ExprOp::kReduce)
      elements = std::max(elements, points_at_hint(kernel.pool, kernel.outputs[0].axes) *
                                        points_at_hint(kernel.pool, kernel.pool[id].axes));
  return elements;
}

// Instructions if each thread has one element.
double instructions_alone(const Kernel& kernel) {
  return kAlone * summed_elements(kernel) + kResult * points_at_hint(kernel.pool, kernel.outputs[0].axes);
}

// True if windows read several tensors.
bool reads_weights(const SlidingWindow& windows) {
  const ExprPool& pool = windows.kernel.pool;
  return std::ranges::any_of(windows.reductions, [&](ExprId r) {
    std::set<ValueId> sources;
    for (const ExprId id : reachable(pool, std::span(&r, 1)))
      if (pool[id].op == ExprOp::kLoad) sources.insert(pool[id].source);
    return sources.size() > 1;
  });
}

}  // namespace

StencilCandidate best_stencil(const KernelPlanner& planner) {
  StencilCandidate candidate;
  const Kernel& kernel = planner.kernel();
  const KernelForm form = planner.form().form;
  if (form != KernelForm::kRowReduction && form != KernelForm::kThreadPerElement) return candidate;
  auto channels = find_nhwc_stencil(kernel, planner.graph(), planner.target());
  const bool of_channels = channels && (form == KernelForm::kRowReduction
                                            ? channels->overlapping || (channels->whole_vectors && !planner.rows())
                                            : channels->whole_vectors);
  if (!of_channels) candidate.written = find_unrolled_reductions(kernel, planner.graph());
  if (candidate.written) return candidate;
  const NchwStencil* planes = of_channels ? nullptr : planner.planes();
  auto columns = of_channels ? std::nullopt : find_sliding_window(kernel, planner.graph(), planner.target());
  if (planes && planes->instructions >= instructions_alone(kernel)) planes = nullptr;
  // Rows without overlap are shared among threads, which read them once.
  if (columns && form == KernelForm::kRowReduction && columns->slid.empty() && planner.rows()) columns.reset();
  // Weights and overlapping input are better staged in shared memory, though copying takes instructions.
  if (columns && planes && reads_weights(*columns)) columns.reset();
  if (columns && columns->instructions >= (planes ? planes->instructions : instructions_alone(kernel))) columns.reset();
  if (of_channels) candidate.channels = std::move(channels);
  if (columns)
    candidate.columns = std::move(columns);
  else if (planes)
    candidate.planes = *planes;
  return candidate;
}

std::optional<GroupedImplicitGemm> best_grouped_implicit_gemm(const KernelPlanner& planner) {
  const FormOfKernel& form = planner.form();
  if (form.form == KernelForm::kRowReduction || form.form == KernelForm::kThreadPerElement) {
    auto groups = find_grouped_implicit_gemm(planner.graph(), planner.kernel(), planner.target());
    if (!groups || !groups->image_is_nchw) return groups;
    const NchwStencil* planes = planner.planes();
    return planes && planes->instructions < groups->instructions ? std::nullopt : std::move(groups);
  }
  if (!form.contraction) return std::nullopt;
  auto groups = find_grouped_implicit_gemm(planner.graph(), planner.shaped(), *form.contraction, planner.target());
  if (!groups) return std::nullopt;
  // GEMM tiles with more columns than a group has are slower than predicted.
  constexpr std::int64_t kFewColumns = 32;
  const auto members = static_cast<double>(std::min(groups->members, kFewColumns));
  const double mostly_empty = static_cast<double>(kFewColumns) / members;
  if (const GemmForm* gemm = planner.gemm(); gemm && std::min(mostly_empty, 2.0) * gemm->cycles < groups->cycles)
    return std::nullopt;
  // The same holds for gathered operands. Weights that are loaded element by element cost as much, unless half of each
  // tile is empty.
  constexpr std::int64_t kHalfEmpty = 8;
  const bool by_elements = groups->image_is_nchw && !groups->weights_in_words && groups->members > kHalfEmpty;
  const double gathers = groups->members <= kFewColumns && !by_elements ? 2 : 1;
  if (const ConvolutionForm* gathered = planner.convolution(); gathered && gathers * gathered->cycles < groups->cycles)
    return std::nullopt;
  return groups;
}

std::optional<double> loop_instructions(const KernelPlanner& planner) {
  const KernelForm form = planner.form().form;
  if (form != KernelForm::kRowReduction && form != KernelForm::kThreadPerElement) return std::nullopt;
  const StencilCandidate& candidate = planner.stencil();
  if (candidate.planes) return candidate.planes->instructions;
  if (candidate.columns) return candidate.columns->instructions;
  if (candidate.channels || candidate.written) return kInWindows * summed_elements(planner.kernel());
  if (planner.kind_of_loops() == KernelKind::kRowReduction) return std::nullopt;
  return instructions_alone(planner.kernel());
}

}  // namespace fusec
