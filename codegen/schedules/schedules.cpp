#include "codegen/schedules/schedules.h"

#include <limits>

#include "analysis/kernel_forms.h"
#include "analysis/vector_product.h"
#include "analysis/window_ways.h"
#include "codegen/parameter_table.h"
#include "codegen/schedules/attention.h"
#include "codegen/schedules/channel_windows.h"
#include "codegen/schedules/column_windows.h"
#include "codegen/schedules/contraction.h"
#include "codegen/schedules/convolution.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/few_rows.h"
#include "codegen/schedules/gemm.h"
#include "codegen/schedules/gemm_shares.h"
#include "codegen/schedules/gemm_warpgroup.h"
#include "codegen/schedules/group_windows.h"
#include "codegen/schedules/plane_windows.h"
#include "codegen/schedules/pointwise.h"
#include "codegen/schedules/row_product.h"
#include "codegen/schedules/row_reduction.h"
#include "ir/error.h"

namespace fusec {
namespace {

// Ways of a product of few rows.
KernelSource choose_few_rows(const Kernel& kernel, const Product& product, FewRowsForm& form, const Graph& graph,
                             Choices& choices) {
  std::vector<std::string> ways;
  for (const FewRowsBlock& block : form.ways) ways.push_back(name_of(block));
  form.block = form.ways[choices.take(std::move(ways))];
  return few_rows(kernel, product, form, graph);
}

void choose_tiles(GemmForm& form, Choices& choices) {
  std::vector<std::string> ways;
  for (const GemmTiles& tiles : form.ranking) ways.push_back(name_of(tiles));
  form.tiles = form.ranking[choices.take(std::move(ways))];
}

// Tiles of warps, which may have a share of the depth each, or the last of them stretches of it.
std::vector<KernelSource> warps_product(const Kernel& kernel, const Product& product, const GemmForm& form,
                                        const Graph& graph) {
  std::vector<KernelSource> sources{gemm(kernel, product, form, graph)};
  const GemmTiles& t = form.tiles;
  if (t.shares > 1)
    sources.push_back(
        add_gemm_shares(kernel, product, form, GemmShares(t.shares, product, kernel.pool, t.rows, t.columns), graph));
  if (t.streamed > 0)
    sources.push_back(
        add_gemm_shares(kernel, product, form, GemmShares(streams_of(kernel.pool, product, t), product, t), graph));
  return sources;
}

std::vector<KernelSource> warpgroups_product(const Kernel& kernel, const Product& product,
                                             const WarpgroupGemmForm& wide, const GemmForm& of_warps,
                                             const Graph& graph, const Target& target) {
  const WarpgroupPart part{kernel, wide.product ? *wide.product : product, wide};
  std::vector<KernelSource> sources{gemm_warpgroup({&part, 1}, graph, target)};
  const WarpgroupTiles& t = part.form.tiles;
  if (t.shares == 1) return sources;
  GemmForm form = of_warps;
  form.tiles.columns = t.columns;
  const GemmShares shares(t.shares, part.product, part.kernel.pool, t.rows() * t.cluster, t.columns);
  sources.push_back(add_gemm_shares(part.kernel, part.product, form, shares, graph));
  return sources;
}

// A way of warpgroups, or else one of warps.
struct TiledWay {
  const WarpgroupGemmForm* wide = nullptr;
  GemmTiles tiles;
};

// Ways of warpgroups that are predicted to be the fastest come first, then those of warps, then the other ones.
TiledWay choose_way(const std::vector<WarpgroupGemms>& wide, const std::vector<GemmTiles>& of_warps, double cycles,
                    Choices& choices) {
  const auto first = static_cast<std::size_t>(
      std::ranges::count_if(wide, [&](const WarpgroupGemms& gemms) { return gemms.cycles < cycles; }));
  std::vector<std::string> ways;
  for (std::size_t i = 0; i < first; ++i) ways.push_back(name_of(wide[i].forms[0].tiles));
  for (const GemmTiles& tiles : of_warps) ways.push_back(name_of(tiles));
  for (std::size_t i = first; i < wide.size(); ++i) ways.push_back(name_of(wide[i].forms[0].tiles));
  const std::size_t way = choices.take(std::move(ways));
  if (way >= first && way < first + of_warps.size()) return {nullptr, of_warps[way - first]};
  return {&wide[way < first ? way : way - of_warps.size()].forms[0], {}};
}

std::vector<KernelSource> tiled_product(const Kernel& kernel, const Product& product, GemmForm& form,
                                        const Graph& graph, const Target& target, Choices& choices) {
  const WarpgroupCandidate candidate{&kernel, &product, &form, nullptr, &graph};
  const std::vector<WarpgroupGemms> wide = rank_warpgroup_gemms({&candidate, 1}, target);
  const TiledWay way = choose_way(wide, form.ranking, form.cycles, choices);
  if (way.wide) return warpgroups_product(kernel, product, *way.wide, form, graph, target);
  form.tiles = way.tiles;
  return warps_product(kernel, product, form, graph);
}

std::vector<KernelSource> gathered_product(const Kernel& kernel, const Product& product, ConvolutionForm& form,
                                           const Graph& graph, const Target& target, Choices& choices) {
  const std::vector<WarpgroupGemms> wide = rank_warpgroup_convolutions(graph, kernel, product, form, target);
  const TiledWay way = choose_way(wide, form.ranking, form.cycles, choices);
  if (way.wide) return warpgroups_product(kernel, product, *way.wide, as_gemm(form), graph, target);
  form.tiles = way.tiles;
  return convolution(kernel, product, {&form, 1}, graph);
}

// Of no form for tiles of warps: several sums, of images with their own depths, one after the other, or warpgroups'.
std::vector<KernelSource> untiled_product(const Kernel& kernel, const Product& product, const Graph& graph,
                                          const Target& target, Choices& choices) {
  const std::vector<WarpgroupGemms> wide = rank_warpgroup_images(graph, kernel, product, target);
  std::optional<JoinedConvolutions> joined;
  if (!needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)))
    joined = find_joined_convolutions(graph, kernel, product, target);
  if (wide.empty() && !joined) return {contraction(kernel, product, graph)};
  // Warpgroups come first: what is predicted of sums one after the other says too little of how their tiles are filled.
  const TiledWay way = choose_way(wide, joined ? joined->ranking : std::vector<GemmTiles>(),
                                  std::numeric_limits<double>::infinity(), choices);
  if (!way.wide) {
    joined->take(way.tiles);
    return convolution(kernel, product, joined->forms, graph);
  }
  const GemmForm form{.dtype = way.wide->dtype, .loops = {}, .tiles = {}, .sums = way.wide->sums};
  return warpgroups_product(kernel, product, *way.wide, form, graph, target);
}

// Windows that neighbours share, as channels or places lie; rows, where they can be shared out; else each result in a
// thread.
std::vector<KernelSource> rows_or_elements(const Kernel& kernel, KernelForm form, const Graph& graph,
                                           const Target& target, Choices& choices) {
  const WindowWay way = window_way(graph, kernel, form, target);
  if (way.channels) return {channel_windows(kernel, *way.channels, graph)};
  if (way.written) return {pointwise(*way.written, graph, target, choices)};
  if (way.planes) return {plane_windows(kernel, *way.planes, graph)};
  if (way.columns) return {column_windows(*way.columns, graph)};
  if (form == KernelForm::kRows)
    if (auto sources = row_reduction(kernel, graph, target, choices); !sources.empty()) return sources;
  return {direct(kernel, graph, target)};
}

std::vector<KernelSource> sources_of(const Kernel& kernel, const Graph& graph, const Target& target, Choices& choices) {
  const FormOfKernel form = form_of(kernel);
  if (const auto groups = group_way(graph, kernel, form, target)) return {group_windows(kernel, *groups, graph)};
  switch (form.form) {
    case KernelForm::kPointwise:
      if (const auto columns = find_column_windows(kernel, graph, target);
          columns && !shares_parts_in_vectors(kernel, graph, target))
        return {column_windows(*columns, graph)};
      return {pointwise(kernel, graph, target, choices)};
    case KernelForm::kTensorCoreProduct:
    case KernelForm::kProduct: {
      const Kernel& shaped = form.rewritten ? *form.rewritten : kernel;
      if (auto few = find_few_rows(graph, shaped, *form.product, target))
        return {choose_few_rows(shaped, *form.product, *few, graph, choices)};
      if (auto tiled = find_gemm(graph, shaped, *form.product, target))
        return tiled_product(shaped, *form.product, *tiled, graph, target, choices);
      if (!needs_wide_index(shaped, graph, point_count(shaped.pool, shaped.outputs.at(0).axes)))
        if (auto gathered = find_convolution(graph, shaped, *form.product, target))
          return gathered_product(shaped, *form.product, *gathered, graph, target, choices);
      return untiled_product(shaped, *form.product, graph, target, choices);
    }
    case KernelForm::kRowProduct:
      if (auto tiled = find_pipelined_rows(graph, *form.row_product, target)) {
        choose_tiles(*tiled, choices);
        return {gemm_of_rows(*form.row_product, *tiled, graph)};
      }
      return {row_product(*form.row_product, graph)};
    case KernelForm::kAttention:
      return attention(*form.attention, graph, target);
    case KernelForm::kRows:
      if (auto vector = find_vector_product(kernel, graph, target))
        return {choose_few_rows(vector->answer.kernel ? *vector->answer.kernel : kernel, *vector->answer.product,
                                vector->form, graph, choices)};
      return rows_or_elements(kernel, form.form, graph, target, choices);
    case KernelForm::kElements:
      return rows_or_elements(kernel, form.form, graph, target, choices);
  }
  throw InternalError("a kernel of unknown form");
}

}  // namespace

std::vector<KernelSource> schedule(const Kernel& kernel, const Graph& graph, const Target& target,
                                   const std::string& wanted) {
  Choices choices(wanted);
  std::vector<KernelSource> sources = sources_of(kernel, graph, target, choices);
  for (KernelSource& source : sources) source.tuning.ways = choices.ways();
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
    if (f.form.form != KernelForm::kTensorCoreProduct) return std::nullopt;
    if (f.form.rewritten) f.shaped = &*f.form.rewritten;
    if (find_few_rows(graph, *f.shaped, *f.form.product, target)) return std::nullopt;
    auto tiled = find_gemm(graph, *f.shaped, *f.form.product, target);
    if (!tiled) return std::nullopt;
    f.tiled = *std::move(tiled);
  }
  std::vector<WarpgroupCandidate> candidates;
  for (const Found& f : found) candidates.push_back({f.shaped, &*f.form.product, &f.tiled});
  const std::vector<WarpgroupGemmForm> wide = find_warpgroup_gemms(candidates, target);
  if (wide.empty()) return std::nullopt;
  std::vector<WarpgroupPart> parts;
  for (std::size_t i = 0; i < found.size(); ++i) parts.push_back({*found[i].shaped, *found[i].form.product, wide[i]});
  KernelSource source = gemm_warpgroup(parts, graph, target);
  if (parameter_bytes(source.parameters) > static_cast<std::size_t>(kMaxParameterBytes) || !source.tabled.empty())
    return std::nullopt;
  return source;
}

}  // namespace fusec
