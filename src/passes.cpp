#include "passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/annotate.h"
#include "analysis/lowering/feeds_quantization.h"
#include "codegen/launch/build_launch_plan.h"
#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/spelling.h"
#include "transforms/choose_layouts.h"
#include "transforms/decompose_attention.h"
#include "transforms/fold_constants.h"
#include "transforms/fuse.h"
#include "transforms/merge_groups.h"
#include "transforms/patterns/claim.h"
#include "transforms/patterns/recognize.h"
#include "transforms/plan_file.h"
#include "transforms/prepare.h"
#include "transforms/remove_dead.h"
#include "transforms/simplify_algebra.h"
#include "transforms/sink_split.h"
#include "transforms/sum_rows_first.h"

namespace fusec {
namespace {

// The number of arguments that fit into so many parameter bytes. Pointers and symbol values take up to 8 bytes each.
std::uint32_t parameters_left(int bytes, const Graph& graph) {
  const auto all = static_cast<std::size_t>(bytes) / 8;
  return static_cast<std::uint32_t>(all > graph.symbols.size() + 8 ? all - graph.symbols.size() : 8);
}

std::uint32_t argument_limit(const PipelineOptions& options, const Graph& graph) {
  if (options.max_args != 0 || options.strategy != Strategy::kFull) return options.max_args;
  return parameters_left(kMaxParameterBytes, graph);
}

// The limit for horizontally fused kernels. A limit of the user's holds for them, too.
std::uint32_t argument_limit_side_by_side(const PipelineOptions& options, const Graph& graph) {
  if (options.max_args != 0 || options.strategy != Strategy::kFull) return options.max_args;
  return parameters_left(kMaxLargeParameterBytes, graph);
}

// Runs a rewriting on the graph together with the origins of its nodes, which the report keeps.
template <class Rewriting>
void rewrite_with(CompilationState& state, Rewriting rewriting) {
  PlannedModel& planned = *state.planned;
  PartitionReportContext& report = planned.report;
  if (report.stands_for.empty()) report.stands_for = as_given(planned.graph);
  CanonicalGraph canonical{.graph = std::move(planned.graph),
                           .stands_for = std::move(report.stands_for),
                           .dropped = std::move(report.dropped),
                           .folded = std::move(report.folded)};
  rewriting(canonical);
  planned.graph = std::move(canonical.graph);
  report.stands_for = std::move(canonical.stands_for);
  report.dropped = std::move(canonical.dropped);
  report.folded = std::move(canonical.folded);
}

template <void (*rewriting)(CanonicalGraph&)>
void rewrite(CompilationState& state) {
  rewrite_with(state, rewriting);
}

// Under round_intermediates no pattern is recognized, because a composite op does not round between its steps.
void recognize(CompilationState& state) {
  if (state.options.emit.round_intermediates) return;
  rewrite_with(state, [&](CanonicalGraph& canonical) {
    const std::vector<std::string> names = recognize_patterns(canonical, state.options.patterns, state.options.limits);
    std::vector<std::string>& all = state.planned->rewriting_patterns;
    all.insert(all.end(), names.begin(), names.end());
  });
}

// Under round_intermediates no attention is decomposed, because its parts round where the op does not.
void decompose(CompilationState& state) {
  if (state.options.emit.round_intermediates) return;
  rewrite_with(state, [&](CanonicalGraph& canonical) { decompose_attention(canonical, state.trials); });
}

void claim(CompilationState& state) {
  rewrite_with(state, [&](CanonicalGraph& canonical) {
    state.planned->claims = claim_patterns(
        canonical, state.options.patterns,
        {.max_fused_ops = state.options.max_fused_ops, .max_args = argument_limit(state.options, canonical.graph)},
        &state.trials);
  });
}

// Under round_intermediates results must be bit-identical, so only nodes that the device computes exactly are folded.
void fold_known_nodes(CompilationState& state) {
  if (state.options.emit.round_intermediates)
    rewrite<fold_exact_constants>(state);
  else
    rewrite<fold_constants>(state);
}

void note_fusion_disabled(CompilationState& state) {
  require_allowed_kinds(state.planned->graph, pattern_source(state.options.strategy));
  disable_fusion(state.planned->graph, state.options.no_fuse_ops, state.options.no_fuse_nodes);
}

void annotate_nodes(CompilationState& state) {
  mark_feeds_quantization(state.planned->graph);
  state.planned->kinds = annotate(state.planned->graph, pattern_source(state.options.strategy));
}

// A given plan is used unchanged.
bool plan_is_given(const PipelineOptions& options) {
  return !options.plan_text.empty() || !options.plan_file.empty();
}

void fuse_nodes(CompilationState& state) {
  const PipelineOptions& options = state.options;
  PlannedModel& planned = *state.planned;
  FuseOptions limits{.strategy = options.strategy,
                     .max_fused_ops = options.max_fused_ops,
                     .max_args = argument_limit(options, planned.graph),
                     .max_args_side_by_side = argument_limit_side_by_side(options, planned.graph),
                     .named = options.strategy != Strategy::kFull,
                     .claims = std::move(planned.claims)};
  if (!options.plan_text.empty())
    planned.plan = read_plan(options.plan_text, "plan", planned.graph, planned.kinds, limits);
  else if (!options.plan_file.empty())
    planned.plan =
        read_plan(read_text_file(options.plan_file), options.plan_file, planned.graph, planned.kinds, limits);
  else
    planned.plan = fuse(planned.graph, planned.kinds, std::move(limits));
  if (options.strategy == Strategy::kFull && !plan_is_given(options))
    planned.lowering = state.trials.keep_uses_and_kernels(planned.graph);
}

template <void (*merging)(const Graph&, std::span<const OpPattern>, FusionPlan&, TrialMemory&)>
void merge(CompilationState& state) {
  if (!plan_is_given(state.options))
    merging(state.planned->graph, state.planned->kinds, state.planned->plan, state.trials);
}

void prepare_plan(CompilationState& state) {
  if (!plan_is_given(state.options)) prepare_groups(state.planned->graph, state.planned->plan);
}

void name_plan(CompilationState& state) {
  if (!plan_is_given(state.options)) name_groups(state.planned->graph, state.planned->plan);
}

// Chooses layouts, also for a given plan, which does not hold any.
void lay_out_values(CompilationState& state) {
  PlannedModel& planned = *state.planned;
  planned.laid_out = choose_layouts(planned.graph, planned.plan, state.trials);
  if (planned.laid_out) verify_laid_out(planned.graph, planned.plan, *planned.laid_out);
}

void lower_groups(CompilationState& state) {
  const PlannedModel& planned = *state.planned;
  state.lowered = lower_plan(planned.source_graph(), planned.source_plan(), state.options.target, state.options.emit,
                             state.forms.get(), planned.laid_out ? nullptr : planned.lowering.get());
}

void plan_launch(CompilationState& state) {
  state.generated->launch = build_launch_plan(state.planned->source_graph(), std::move(state.lowered));
}

void emit_source(CompilationState& state) {
  GeneratedModel& generated = *state.generated;
  generated.file = emit_file(state.planned->source_graph(), state.planned->source_plan(), generated.launch,
                             state.options.target, state.units);
}

void compile_source(CompilationState& state) {
  state.modules = compile_all(*state.nvrtc, {state.sources.begin(), state.sources.end()}, state.options.target.arch,
                              state.options.compile);
}

constexpr Pass kPasses[] = {
    {"read", "reads the model, checks every rule of the format, infers all types", CompilationPart::kRead, nullptr},
    {"keep-apart", "takes what the user says of nodes: pattern kinds, and which ops and nodes stay out of fusion",
     CompilationPart::kGraph, note_fusion_disabled},
    {"remove-dead", "drops what no output needs, takes nodes by depth from the outputs (under full)",
     CompilationPart::kGraph, rewrite<remove_dead>, true},
    {"fold-constants", "evaluates what is made of constants alone (under full)", CompilationPart::kGraph,
     fold_known_nodes, true},
    {"simplify-algebra", "applies the algebraic rules, removes identities and duplicates (under full)",
     CompilationPart::kGraph, rewrite<simplify_algebra>, true},
    {"recognize-patterns", "makes composite ops of what was written as primitive ones (under full)",
     CompilationPart::kGraph, recognize, true},
    {"decompose-attention", "makes products and a softmax of attention that no kernel has a form for (under full)",
     CompilationPart::kGraph, decompose, true},
    {"sum-rows-first", "sums rows behind a softmax before these sums are added up (under full)",
     CompilationPart::kGraph, rewrite<sum_rows_first>, true},
    {"sink-split", "makes pieces of pieces pieces of the tensor itself, each for itself (under full)",
     CompilationPart::kGraph, rewrite<sink_split>, true},
    {"prepare-constants", "marks what is made of constants alone and is no dearer to read than to compute (under full)",
     CompilationPart::kGraph, rewrite<mark_prepared>, true},
    {"claim-patterns", "makes groups of what patterns match, before the partitioner runs (under full)",
     CompilationPart::kGraph, claim, true},
    {"annotate", "derives the op pattern kind of every node from its formula and shapes, and what leads to codes",
     CompilationPart::kPlan, annotate_nodes},
    {"fuse", "groups nodes in three phases over the post-dominator tree", CompilationPart::kPlan, fuse_nodes},
    {"split-costly", "takes apart what is predicted to take longer as one kernel than node by node (under full)",
     CompilationPart::kPlan, merge<split_costly>, true},
    {"merge-forward", "merges a group into one that reads its results, where both are one kernel (under full)",
     CompilationPart::kPlan, merge<merge_forward>, true},
    {"prepare-groups", "moves launches that depend on constants alone to M_prepare (under full)",
     CompilationPart::kPlan, prepare_plan, true},
    {"merge-siblings", "merges groups that read the same, and puts small ones side by side in one launch (under full)",
     CompilationPart::kPlan, merge<merge_siblings>, true},
    {"recompute", "computes a cheap group in each of several that read it, where that moves no more bytes (under full)",
     CompilationPart::kPlan, merge<recompute>, true},
    {"move-borders", "computes what widens a group's result where it is read, and stores it narrow (under full)",
     CompilationPart::kPlan, merge<move_borders>, true},
    {"move-views", "permutes where a value is made, not where it is multiplied, if that is faster (under full)",
     CompilationPart::kPlan, merge<move_views>, true},
    {"name-groups", "names every group by what it computes (under full, where fuse leaves it to this)",
     CompilationPart::kPlan, name_plan, true, true},
    {"choose-layouts",
     "keeps values between convolutions with their channels last in memory, where that pays (under full)",
     CompilationPart::kSource, lay_out_values, true},
    {"lower", "puts the formulas of each group into one another and gives every kernel a schedule",
     CompilationPart::kSource, lower_groups},
    {"plan-launch", "places every value in memory, intermediates in one arena by lifetime", CompilationPart::kSource,
     plan_launch},
    {"emit", "prints kernels and host part as CUDA source", CompilationPart::kSource, emit_source},
    {"nvrtc", "compiles the kernels to PTX and cubin", CompilationPart::kProgram, compile_source},
};

}  // namespace

std::span<const Pass> passes() {
  return kPasses;
}

const Pass& find_pass(std::string_view name) {
  const auto found = std::ranges::find(kPasses, name, &Pass::name);
  if (found != std::end(kPasses)) return *found;
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  throw Error(ErrorKind::kUsage, {.what = "no such pass",
                                  .found = in_quotes(name),
                                  .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                                  .hint = did_you_mean(name, names)});
}

void require_optional_passes(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (const Pass& pass = find_pass(name); pass.under_full_alone && !pass.needed) continue;
    std::vector<std::string_view> optional;
    for (const Pass& pass : kPasses)
      if (pass.under_full_alone && !pass.needed) optional.push_back(pass.name);
    throw Error(ErrorKind::kUsage, {.what = "a pass that cannot be left out",
                                    .found = in_quotes(name),
                                    .expected = fmt::format("one of {}", fmt::join(optional, ", "))});
  }
}

}  // namespace fusec
