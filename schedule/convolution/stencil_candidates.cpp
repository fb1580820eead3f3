#include "schedule/convolution/stencil_candidates.h"

#include <algorithm>
#include <set>

#include "schedule/gemm/convolution_form.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/reduction/row_candidates.h"
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

const std::optional<NchwStencil>& planes_of(const Graph& graph, const Kernel& kernel, const FormOfKernel& form,
                                            const Target& target) {
  return form.plans.of(kernel, graph, target, [&] { return find_nchw_stencil(kernel, graph, target); });
}

StencilCandidate best_stencil(const Graph& graph, const Kernel& kernel, const FormOfKernel& form_of_kernel,
                              const Target& target) {
  StencilCandidate candidate;
  const KernelForm form = form_of_kernel.form;
  if (form != KernelForm::kRowReduction && form != KernelForm::kThreadPerElement) return candidate;
  const auto are_shared_out = [&] { return row_candidates(form_of_kernel, kernel, graph, target).has_value(); };
  auto channels = find_nhwc_stencil(kernel, graph, target);
  const bool of_channels = channels && (form == KernelForm::kRowReduction
                                            ? channels->overlapping || (channels->whole_vectors && !are_shared_out())
                                            : channels->whole_vectors);
  if (!of_channels) candidate.written = find_unrolled_reductions(kernel, graph);
  if (candidate.written) return candidate;
  auto planes = of_channels ? std::nullopt : planes_of(graph, kernel, form_of_kernel, target);
  auto columns = of_channels ? std::nullopt : find_sliding_window(kernel, graph, target);
  if (planes && planes->instructions >= instructions_alone(kernel)) planes.reset();
  // Rows without overlap are shared among threads, which read them once.
  if (columns && form == KernelForm::kRowReduction && columns->slid.empty() && are_shared_out()) columns.reset();
  // Weights and overlapping input are better staged in shared memory, though copying takes instructions.
  if (columns && planes && reads_weights(*columns)) columns.reset();
  if (columns && columns->instructions >= (planes ? planes->instructions : instructions_alone(kernel))) columns.reset();
  if (of_channels) candidate.channels = std::move(channels);
  if (columns)
    candidate.columns = std::move(columns);
  else if (planes)
    candidate.planes = std::move(planes);
  return candidate;
}

std::optional<GroupedImplicitGemm> find_best_groups(const Graph& graph, const Kernel& kernel, const FormOfKernel& form,
                                                    const Target& target) {
  if (form.form == KernelForm::kRowReduction || form.form == KernelForm::kThreadPerElement) {
    auto groups = find_grouped_implicit_gemm(graph, kernel, target);
    if (!groups || !groups->image_is_nchw) return groups;
    const auto& planes = planes_of(graph, kernel, form, target);
    return planes && planes->instructions < groups->instructions ? std::nullopt : std::move(groups);
  }
  if (!form.contraction) return std::nullopt;
  const Kernel& shaped = form.rewritten ? *form.rewritten : kernel;
  auto groups = find_grouped_implicit_gemm(graph, shaped, *form.contraction, target);
  if (!groups) return std::nullopt;
  // GEMM tiles with more columns than a group has are slower than predicted.
  constexpr std::int64_t kFewColumns = 32;
  const auto members = static_cast<double>(std::min(groups->members, kFewColumns));
  const double mostly_empty = static_cast<double>(kFewColumns) / members;
  if (const auto gemm = find_gemm(graph, shaped, *form.contraction, target);
      gemm && std::min(mostly_empty, 2.0) * gemm->cycles < groups->cycles)
    return std::nullopt;
  // The same holds for gathered operands. Weights that are loaded element by element cost as much, unless half of each
  // tile is empty.
  constexpr std::int64_t kHalfEmpty = 8;
  const bool by_elements = groups->image_is_nchw && !groups->weights_in_words && groups->members > kHalfEmpty;
  const double gathers = groups->members <= kFewColumns && !by_elements ? 2 : 1;
  if (const auto gathered = find_convolution(graph, shaped, *form.contraction, target);
      gathered && gathers * gathered->cycles < groups->cycles)
    return std::nullopt;
  return groups;
}

}  // namespace

const StencilCandidate& find_stencil(const Graph& graph, const Kernel& kernel, const FormOfKernel& form,
                                     const Target& target) {
  return form.plans.of(kernel, graph, target, [&] { return best_stencil(graph, kernel, form, target); });
}

const std::optional<GroupedImplicitGemm>& best_grouped_implicit_gemm(const Graph& graph, const Kernel& kernel,
                                                                     const FormOfKernel& form, const Target& target) {
  return form.plans.of(kernel, graph, target, [&] { return find_best_groups(graph, kernel, form, target); });
}

std::optional<double> loop_instructions(const Graph& graph, const Kernel& kernel, const FormOfKernel& form,
                                        const Target& target) {
  if (form.form != KernelForm::kRowReduction && form.form != KernelForm::kThreadPerElement) return std::nullopt;
  const StencilCandidate& candidate = find_stencil(graph, kernel, form, target);
  if (candidate.planes) return candidate.planes->instructions;
  if (candidate.columns) return candidate.columns->instructions;
  if (candidate.channels || candidate.written) return kInWindows * summed_elements(kernel);
  if (form.form == KernelForm::kRowReduction && row_candidates(form, kernel, graph, target)) return std::nullopt;
  return instructions_alone(kernel);
}

}  // namespace fusec
