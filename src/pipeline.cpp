#include "pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/mapped_file.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes.h"
#include "predicted_model.h"
#include "transforms/cost_report.h"

namespace fusec {
namespace {

#ifdef NDEBUG
constexpr bool kAlwaysVerify = false;
#else
constexpr bool kAlwaysVerify = true;
#endif

constexpr std::size_t kLargestToCompare = 2000;  // most nodes of a model whose plan is compared with other strategies
constexpr double kRounding = 1 + 1e-9;

void add_names(const std::vector<std::string>& names, std::vector<std::string>& to) {
  for (const std::string& name : names)
    if (std::ranges::find(to, name) == to.end()) to.push_back(name);
}

}  // namespace

PipelineOptions leaving_out(PipelineOptions options, const LeftOut& left_out) {
  require_optional_passes(left_out.passes);
  add_names(left_out.passes, options.left_out.passes);
  add_names(left_out.patterns, options.left_out.patterns);
  std::erase_if(options.patterns, [&](const ListedPattern& pattern) {
    return std::ranges::any_of(left_out.patterns,
                               [&](const std::string& name) { return name == "all" || name == pattern.name(); });
  });
  return options;
}

void Pipeline::timed(std::string_view name, const std::function<void()>& stage) {
  const auto start = std::chrono::steady_clock::now();
  enter_stage(name);
  stage();
  look_at_budget();
  times_.push_back(
      {std::string(name), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
}

void Pipeline::run(const Pass& pass, CompilationState& state) {
  if (options_.progress) options_.progress(pass);
  const Graph* graph = state.planned ? &state.planned->source_graph() : nullptr;
  if (graph && options_.before_pass) options_.before_pass(pass, *graph);
  const bool rewrites = pass.part == CompilationPart::kGraph;
  const std::string before = rewrites && options_.debug_level >= 2 ? graph_text(*graph) : "";
  timed(pass.name, [&] { pass.run(state); });
  if (graph) graph = &state.planned->source_graph();
  if (rewrites && (kAlwaysVerify || options_.debug_level >= 1)) {
    try {
      verify(*graph, std::string(pass.name));
    } catch (const InternalError& error) {
      if (before.empty()) throw;
      throw InternalError(fmt::format("{}\nthe graph before {}:\n{}", error.what(), pass.name, before));
    }
  }
  if (graph && options_.after_pass) options_.after_pass(pass, *graph);
}

bool Pipeline::is_wanted(const Pass& pass) const {
  return !pass.under_full_alone ||
         (options_.strategy == Strategy::kFull &&
          std::ranges::find(options_.left_out.passes, pass.name) == options_.left_out.passes.end());
}

// Past the deadline, passes that can be left out are.
void Pipeline::run_part(CompilationPart part, CompilationState& state) {
  // A rewriting ends what it begins, so that a plan that is read later finds the same graph.
  if (part != CompilationPart::kGraph) state.trials.set_deadline(deadline_);
  for (const Pass& pass : passes()) {
    if (pass.part != part || !is_wanted(pass)) continue;
    const bool optional = pass.under_full_alone && !pass.needed;
    if (optional && deadline_.has_passed())
      add_names({std::string(pass.name)}, state.planned->left_out.passes);
    else
      run(pass, state);
    if (optional && deadline_.has_passed() && state.planned->ended_in.empty()) state.planned->ended_in = pass.name;
  }
}

PlannedModel Pipeline::plan(Graph graph) {
  if (!options_.plan_text.empty() || !options_.plan_file.empty()) return plan_as_given(std::move(graph));
  if (options_.plan_seconds > 0) deadline_ = Deadline::in(options_.plan_seconds);
  if (options_.strategy != Strategy::kFull || graph.nodes.size() > kLargestToCompare)
    return plan_as_asked(std::move(graph));
  PlannedModel planned = plan_as_asked(graph);
  if (!planned.ended_in.empty()) return planned;
  return options_.own_target || is_dearer_than_unchanged(planned, graph) ? cheaper_of(std::move(planned), graph)
                                                                         : std::move(planned);
}

// A given plan refers to the rewritten graph, so disable the passes and patterns that it lists.
PlannedModel Pipeline::plan_as_given(Graph graph) {
  const std::string text = options_.plan_text.empty() ? read_text_file(options_.plan_file) : options_.plan_text;
  const std::string file = options_.plan_text.empty() ? options_.plan_file : "plan";
  options_ = leaving_out(std::move(options_), left_out_of(text, file));
  return plan_as_asked(std::move(graph));
}

double Pipeline::seconds_of_groups(const PlannedModel& model, double enough) const {
  return fusec::seconds_of_groups(model.graph, model.plan, options_.target, options_.emit.numerics, *forms_,
                                  model.lowering.get(), enough);
}

// Predicted seconds including copies of outputs, which only models with aliases have.
double Pipeline::seconds_of(const PlannedModel& model) const {
  if (model.graph.aliases.empty()) return seconds_of_groups(model);
  const std::optional<LaunchPlan> launch = launch_plan_of(model, options_);
  return predicted(model, launch ? &*launch : nullptr, options_).total().total;
}

// Whether the plan is predicted to be slower than the same model under `tvm` or `none`. A plan with library calls is
// not compared, because the user asked for them.
bool Pipeline::is_dearer_than_unchanged(const PlannedModel& planned, const Graph& graph) {
  if (std::ranges::any_of(planned.plan.groups, [](const FusionGroup& g) { return g.code != GroupCode::kFusec; }))
    return false;
  const double seconds = seconds_of(planned);
  return std::ranges::any_of(std::array{Strategy::kTvm, Strategy::kUnfused}, [&](Strategy strategy) {
    if (deadline_.has_passed()) return false;
    PipelineOptions options = options_;
    options.strategy = strategy;
    options.before_pass = options.after_pass = nullptr;
    options.progress = nullptr;
    Pipeline pipeline(std::move(options));
    pipeline.forms_ = forms_;
    const PlannedModel other = pipeline.plan_as_asked(graph);
    return seconds > kRounding * seconds_of_groups(other, seconds) && seconds > kRounding * seconds_of(other);
  });
}

// Also plans without rewriting and claims, and without the optional passes of `full`. Returns the plan that is
// predicted to be the fastest. The others can win on an unusual chip, or if a merge forces a copy of an output.
PlannedModel Pipeline::cheaper_of(PlannedModel rewritten, const Graph& graph) {
  LeftOut left_out;
  double least = seconds_of(rewritten);
  for (const CompilationPart part : {CompilationPart::kGraph, CompilationPart::kPlan}) {
    for (const Pass& pass : passes())
      if (pass.part == part && pass.under_full_alone && !pass.needed && pass.name != "prepare-constants")
        left_out.passes.emplace_back(pass.name);
    if (part == CompilationPart::kPlan) left_out.patterns = {"all"};
    PipelineOptions plain = leaving_out(options_, left_out);
    plain.before_pass = plain.after_pass = nullptr;
    plain.progress = nullptr;
    Pipeline pipeline(std::move(plain));
    pipeline.deadline_ = deadline_;
    PlannedModel plainer = pipeline.plan_as_asked(graph);
    if (!plainer.ended_in.empty()) break;
    if (const double seconds = seconds_of(plainer); least > kRounding * seconds) {
      rewritten = std::move(plainer);
      least = seconds;
    }
  }
  return rewritten;
}

PlannedModel Pipeline::plan_as_asked(Graph graph) {
  PlannedModel planned{.graph = std::move(graph), .claims = {}, .kinds = {}, .plan = {}, .report = {}, .laid_out = {}};
  planned.report.arch = options_.target.arch;
  if (options_.strategy == Strategy::kFull) planned.left_out = options_.left_out;
  CompilationState state{.options = options_, .planned = &planned, .forms = forms_};
  run_part(CompilationPart::kGraph, state);
  run_part(CompilationPart::kPlan, state);
  return planned;
}

Graph Pipeline::rewritten(Graph graph, const Pass& pass) {
  PlannedModel planned{.graph = std::move(graph), .claims = {}, .kinds = {}, .plan = {}, .report = {}, .laid_out = {}};
  CompilationState state{.options = options_, .planned = &planned, .forms = forms_};
  run(pass, state);
  return std::move(planned.graph);
}

GeneratedModel Pipeline::generate(PlannedModel& planned, std::size_t units) {
  GeneratedModel generated;
  planned.laid_out.reset();
  CompilationState state{
      .options = options_, .planned = &planned, .forms = forms_, .generated = &generated, .units = units};
  run_part(CompilationPart::kSource, state);
  planned.lowering.reset();  // a caller may keep the plan for long
  planned.report.group_launches.assign(planned.plan.groups.size(), 0);
  for (const LaunchStep& step : generated.launch.steps)
    if (step.group < planned.report.group_launches.size()) ++planned.report.group_launches[step.group];
  if (!planned.ended_in.empty())
    generated.launch.warnings.push_back(
        fmt::format("the plan deadline of {} s passed in {}: the best plan until then is taken", options_.plan_seconds,
                    planned.ended_in));
  planned.report.launches = static_cast<std::uint32_t>(generated.launch.steps.size());
  planned.report.kernels = static_cast<std::uint32_t>(generated.launch.kernels.size());
  const auto at_hint = [&](const IndexExpr& bytes) { return value_at_hint(bytes, planned.graph.symbols); };
  planned.report.memory = {.workspace = at_hint(generated.launch.workspace_bytes),
                           .least_workspace = at_hint(generated.launch.live_bytes),
                           .prepared = at_hint(generated.launch.prepared_bytes)};
  return generated;
}

std::vector<CompiledModule> Pipeline::compile(const Nvrtc& nvrtc, const GeneratedModel& generated) {
  CompilationState state{.options = options_, .nvrtc = &nvrtc, .sources = generated.file.units};
  run_part(CompilationPart::kProgram, state);
  return std::move(state.modules);
}

}  // namespace fusec
