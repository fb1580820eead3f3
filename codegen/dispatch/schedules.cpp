#include "codegen/dispatch/schedules.h"

#include <limits>

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
#include "codegen/gemm/row_gemm.h"
#include "codegen/gemm/skinny_gemm.h"
#include "codegen/gemm/split_k.h"
#include "codegen/movement/pointwise.h"
#include "codegen/reduction/row_reduction.h"
#include "codegen/wgmma/gemm_warpgroup.h"
#include "ir/error.h"
#include "schedule/convolution/stencil_candidates.h"
#include "schedule/kernel_forms.h"
#include "schedule/reduction/row_candidates.h"

namespace fusec {
namespace {

// Picks a candidate for a skinny GEMM.
KernelSource choose_skinny_gemm(const Kernel& kernel, const Contraction& contraction, SkinnyGemmForm& form,
                                const Graph& graph, ScheduleChoice& choices) {
  std::vector<std::string> candidates;
  for (const SkinnyGemmBlock& block : form.candidates) candidates.push_back(name_of(block));
  form.block = form.candidates[choices.take(std::move(candidates))];
  return emit_skinny_gemm(kernel, contraction, form, graph);
}

void choose_tiles(GemmForm& form, ScheduleChoice& choices) {
  std::vector<std::string> candidates;
  for (const GemmTiles& tiles : form.ranking) candidates.push_back(name_of(tiles));
  form.tiles = form.ranking[choices.take(std::move(candidates))];
}

// A GEMM by warp-level MMA tiles. Split-K and stream-K add a kernel that reduces the partial accumulators.
std::vector<KernelSource> mma_sync_gemm(const Kernel& kernel, const Contraction& contraction, const GemmForm& form,
                                        const Graph& graph) {
  std::vector<KernelSource> sources{emit_gemm(kernel, contraction, form, graph)};
  const GemmTiles& t = form.tiles;
  if (t.split_k > 1)
    sources.push_back(emit_split_k_reduction(
        kernel, contraction, form, SplitKPartials(t.split_k, contraction, kernel.pool, t.rows, t.columns), graph));
  if (t.stream_k_tiles > 0)
    sources.push_back(emit_split_k_reduction(
        kernel, contraction, form, SplitKPartials(stream_k_of(kernel.pool, contraction, t), contraction, t), graph));
  return sources;
}

std::vector<KernelSource> wgmma_gemm(const Kernel& kernel, const Contraction& contraction,
                                     const WarpgroupGemmForm& wide, const GemmForm& of_warps, const Graph& graph,
                                     const Target& target) {
  const WarpgroupPart part{kernel, wide.contraction ? *wide.contraction : contraction, wide};
  std::vector<KernelSource> sources{gemm_warpgroup({&part, 1}, graph, target)};
  const WarpgroupTiles& t = part.form.tiles;
  if (t.split_k == 1) return sources;
  GemmForm form = of_warps;
  form.tiles.columns = t.columns;
  const SplitKPartials split_k(t.split_k, part.contraction, part.kernel.pool, t.rows() * t.cluster, t.columns);
  sources.push_back(emit_split_k_reduction(part.kernel, part.contraction, form, split_k, graph));
  return sources;
}

// A candidate with warpgroup MMA (`wide`), or else one with warp-level MMA.
struct TileCandidate {
  const WarpgroupGemmForm* wide = nullptr;
  GemmTiles tiles;
};

// Warpgroup candidates with a smaller predicted time come first, then warp-level ones, then the other warpgroup ones.
TileCandidate choose_tile_candidate(const std::vector<WarpgroupGemms>& wide, const std::vector<GemmTiles>& of_warps,
                                    double cycles, ScheduleChoice& choices) {
  const auto first = static_cast<std::size_t>(
      std::ranges::count_if(wide, [&](const WarpgroupGemms& gemms) { return gemms.cycles < cycles; }));
  std::vector<std::string> candidates;
  for (std::size_t i = 0; i < first; ++i) candidates.push_back(name_of(wide[i].forms[0].tiles));
  for (const GemmTiles& tiles : of_warps) candidates.push_back(name_of(tiles));
  for (std::size_t i = first; i < wide.size(); ++i) candidates.push_back(name_of(wide[i].forms[0].tiles));
  const std::size_t candidate = choices.take(std::move(candidates));
  if (candidate >= first && candidate < first + of_warps.size()) return {nullptr, of_warps[candidate - first]};
  return {&wide[candidate < first ? candidate : candidate - of_warps.size()].forms[0], {}};
}

std::vector<KernelSource> tiled_gemm(const Kernel& kernel, const Contraction& contraction, GemmForm& form,
                                     const Graph& graph, const Target& target, ScheduleChoice& choices) {
  const WarpgroupCandidate warpgroup_candidate{&kernel, &contraction, &form, nullptr, &graph};
  const std::vector<WarpgroupGemms> wide = rank_warpgroup_gemms({&warpgroup_candidate, 1}, target);
  const TileCandidate candidate = choose_tile_candidate(wide, form.ranking, form.cycles, choices);
  if (candidate.wide) return wgmma_gemm(kernel, contraction, *candidate.wide, form, graph, target);
  form.tiles = candidate.tiles;
  return mma_sync_gemm(kernel, contraction, form, graph);
}

std::vector<KernelSource> gathered_convolution(const Kernel& kernel, const Contraction& contraction,
                                               ConvolutionForm& form, const Graph& graph, const Target& target,
                                               ScheduleChoice& choices) {
  const std::vector<WarpgroupGemms> wide = rank_warpgroup_convolutions(graph, kernel, contraction, form, target);
  const TileCandidate candidate = choose_tile_candidate(wide, form.ranking, form.cycles, choices);
  if (candidate.wide) return wgmma_gemm(kernel, contraction, *candidate.wide, as_gemm(form), graph, target);
  form.tiles = candidate.tiles;
  return emit_convolution(kernel, contraction, {&form, 1}, graph);
}

// GEMMs without a warp-level form: several convolutions, each with its own K, computed one after the other, or
// warpgroup MMA.
std::vector<KernelSource> untiled_contraction(const Kernel& kernel, const Contraction& contraction, const Graph& graph,
                                              const Target& target, ScheduleChoice& choices) {
  const std::vector<WarpgroupGemms> wide = rank_warpgroup_images(graph, kernel, contraction, target);
  std::optional<JoinedConvolutions> joined;
  if (!needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)))
    joined = find_joined_convolutions(graph, kernel, contraction, target);
  if (wide.empty() && !joined) return {emit_contraction(kernel, contraction, graph)};
  // Warpgroup candidates come first: the prediction for sequential convolutions models their loads too roughly.
  const TileCandidate candidate = choose_tile_candidate(wide, joined ? joined->ranking : std::vector<GemmTiles>(),
                                                        std::numeric_limits<double>::infinity(), choices);
  if (!candidate.wide) {
    joined->take(candidate.tiles);
    return emit_convolution(kernel, contraction, joined->forms, graph);
  }
  const GemmForm form{
      .dtype = candidate.wide->dtype, .loops = {}, .tiles = {}, .accumulators = candidate.wide->accumulators};
  return wgmma_gemm(kernel, contraction, *candidate.wide, form, graph, target);
}

// Stencils in NHWC or NCHW, else row reductions, else one result per thread.
std::vector<KernelSource> rows_or_elements(const Kernel& kernel, const FormOfKernel& form, const Graph& graph,
                                           const Target& target, ScheduleChoice& choices) {
  const StencilCandidate& candidate = find_stencil(graph, kernel, form, target);
  if (candidate.channels) return {emit_nhwc_stencil(kernel, *candidate.channels, graph)};
  if (candidate.written) return {pointwise(*candidate.written, graph, target, choices)};
  if (candidate.planes) return {emit_nchw_stencil(kernel, *candidate.planes, graph)};
  if (candidate.columns) return {emit_sliding_window(*candidate.columns, graph)};
  if (form.form == KernelForm::kRowReduction)
    if (auto sources = row_reduction(form, kernel, graph, target, choices); !sources.empty()) return sources;
  return {direct(kernel, graph, target)};
}

std::vector<KernelSource> sources_of(const Kernel& kernel, const FormOfKernel& form, const Graph& graph,
                                     const Target& target, ScheduleChoice& choices) {
  if (const auto& groups = best_grouped_implicit_gemm(graph, kernel, form, target))
    return {emit_grouped_implicit_gemm(kernel, *groups, graph)};
  switch (form.form) {
    case KernelForm::kPointwise:
      if (const auto columns = find_sliding_window(kernel, graph, target);
          columns && !coarsens_in_vectors(kernel, graph, target))
        return {emit_sliding_window(*columns, graph)};
      return {pointwise(kernel, graph, target, choices)};
    case KernelForm::kTensorCoreContraction:
    case KernelForm::kContraction: {
      const Kernel& shaped = form.rewritten ? *form.rewritten : kernel;
      if (auto few = find_skinny_gemm(graph, shaped, *form.contraction, target))
        return {choose_skinny_gemm(shaped, *form.contraction, *few, graph, choices)};
      if (auto tiled = find_gemm(graph, shaped, *form.contraction, target))
        return tiled_gemm(shaped, *form.contraction, *tiled, graph, target, choices);
      if (!needs_wide_index(shaped, graph, point_count(shaped.pool, shaped.outputs.at(0).axes)))
        if (auto gathered = find_convolution(graph, shaped, *form.contraction, target))
          return gathered_convolution(shaped, *form.contraction, *gathered, graph, target, choices);
      return untiled_contraction(shaped, *form.contraction, graph, target, choices);
    }
    case KernelForm::kRowGemm:
      if (auto tiled = find_pipelined_row_gemm(graph, *form.row_gemm, target)) {
        choose_tiles(*tiled, choices);
        return {emit_pipelined_row_gemm(*form.row_gemm, *tiled, graph)};
      }
      return {emit_row_gemm(*form.row_gemm, graph)};
    case KernelForm::kAttention:
      return attention(*form.attention, graph, target);
    case KernelForm::kRowReduction:
      if (auto vector = gemv_of(form, kernel, graph, target))
        return {choose_skinny_gemm(vector->answer.kernel ? *vector->answer.kernel : kernel, *vector->answer.contraction,
                                   vector->form, graph, choices)};
      return rows_or_elements(kernel, form, graph, target, choices);
    case KernelForm::kThreadPerElement:
      return rows_or_elements(kernel, form, graph, target, choices);
  }
  throw InternalError("a kernel of unknown form");
}

}  // namespace

std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target, FormMemory& forms,
                                   const std::string& wanted) {
  ScheduleChoice choices(wanted);
  std::vector<KernelSource> sources = sources_of(kernel, *forms.of(kernel), graph, target, choices);
  for (KernelSource& source : sources) source.tuning.candidates = choices.candidates();
  return sources;
}

std::optional<KernelSource> schedule_together(std::span<const Kernel* const> kernels, const Graph& graph,
                                              const Target& target) {
  struct Found {
    FormOfKernel form;
    const Kernel* shaped;
    GemmForm tiled;
  };
  std::vector<Found> found;
  found.reserve(kernels.size());
  for (const Kernel* kernel : kernels) {
    found.push_back({form_of(*kernel), kernel, {}});
    Found& f = found.back();
    if (f.form.form != KernelForm::kTensorCoreContraction) return std::nullopt;
    if (f.form.rewritten) f.shaped = &*f.form.rewritten;
    if (find_skinny_gemm(graph, *f.shaped, *f.form.contraction, target)) return std::nullopt;
    auto tiled = find_gemm(graph, *f.shaped, *f.form.contraction, target);
    if (!tiled) return std::nullopt;
    f.tiled = *std::move(tiled);
  }
  std::vector<WarpgroupCandidate> warpgroup_candidates;
  for (const Found& f : found) warpgroup_candidates.push_back({f.shaped, &*f.form.contraction, &f.tiled});
  const std::vector<WarpgroupGemmForm> wide = find_warpgroup_gemms(warpgroup_candidates, target);
  if (wide.empty()) return std::nullopt;
  std::vector<WarpgroupPart> parts;
  for (std::size_t i = 0; i < found.size(); ++i)
    parts.push_back({*found[i].shaped, *found[i].form.contraction, wide[i]});
  KernelSource source = gemm_warpgroup(parts, graph, target);
  if (parameter_bytes(source.parameters) > static_cast<std::size_t>(kMaxParameterBytes) ||
      !source.table_parameters.empty())
    return std::nullopt;
  return source;
}

}  // namespace fusec
