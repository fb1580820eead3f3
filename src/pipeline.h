// From a graph to emitted source: runs the rows of src/passes.h; what the programs and the library API are made of.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/host/emit_file.h"
#include "codegen/launch/emit_options.h"
#include "codegen/launch/launch_plan.h"
#include "codegen/nvrtc/compile_all.h"
#include "ir/fusion_plan.h"
#include "ir/limits.h"
#include "schedule/form_memory.h"
#include "schedule/target/target.h"
#include "transforms/lay_out.h"
#include "transforms/partition_report.h"
#include "transforms/patterns/pattern.h"
#include "transforms/plan_file.h"

namespace fusec {

// Nodes: nobody would run a larger model. Beyond it what takes more than a plan (source to count launches, a second
// plan to compare with) is left out.
inline constexpr std::size_t kLargestToRun = 20000;

struct Pass;
struct CompilationState;
enum class CompilationPart : std::uint8_t;

struct PipelineOptions {
  Strategy strategy = Strategy::kFull;
  Target target;
  bool own_target = false;  // its figures are the user's
  EmitOptions emit;
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;  // 0: none under `tvm` and `none`, what a kernel can hold under `full`
  std::vector<std::string> no_fuse_ops, no_fuse_nodes;
  PatternList patterns;  // in the order in which they are tried
  LeftOut left_out;      // passes; and patterns, which `patterns` has no more: a plan that is written out names both
  std::string plan_file, plan_text;  // an edited plan to compile with: the file or its text; "" for none
  CompileOptions compile;
  Limits limits;
  // FUSEC_DEBUG: 1 verifies the graph after every pass that changes it (debug builds always do), 2 also tells, in the
  // error, the graph before the pass that broke it.
  int debug_level = 0;
  // Called with the graph before and after each pass that has one.
  std::function<void(const Pass&, const Graph&)> before_pass, after_pass;
  // Called as each pass begins.
  std::function<void(const Pass&)> progress;
};

// Wall time of one stage, for --time-passes.
struct StageTime {
  std::string name;
  double seconds;
};

// Without these passes and patterns.
PipelineOptions leaving_out(PipelineOptions options, const LeftOut& left_out);

struct PlannedModel {
  Graph graph;  // after the transforms
  std::vector<PatternClaim> claims;
  std::vector<OpPattern> kinds;
  FusionPlan plan;
  PartitionReportContext report;
  std::vector<std::string> rewriting_patterns = {};  // that replaced something; those that claimed stand in the plan
  LeftOut left_out = {};                             // asked for, or where rewriting was found to cost (Pipeline::plan)
  std::optional<LaidOut> laid_out;  // what source is made of, where values are laid out (choose-layouts)

  // What the launch plan is about.
  const Graph& source_graph() const { return laid_out ? laid_out->graph : graph; }
  const FusionPlan& source_plan() const { return laid_out ? laid_out->plan : plan; }
};

struct GeneratedModel {
  LaunchPlan launch;
  EmittedFile file;
};

class Pipeline {
 public:
  explicit Pipeline(PipelineOptions options) : options_(std::move(options)) {}

  const PipelineOptions& options() const { return options_; }
  // Rewriting and claims pay on every built-in target; on one of the user's own, who knows: there the model is planned
  // without them as well, and what is predicted to take less time is taken.
  PlannedModel plan(Graph graph);
  // Lowers, schedules and emits; completes the report's launches and kernels. `units` as in emit_file.
  GeneratedModel generate(PlannedModel& planned, std::size_t units);
  // PTX and cubin of every unit of the file. Throws Error(kEnvironment) where it does not compile.
  std::vector<CompiledModule> compile(const Nvrtc& nvrtc, const GeneratedModel& generated);

  // One pass alone, from graph to graph.
  Graph rewritten(Graph graph, const Pass& pass);

  const std::vector<StageTime>& times() const { return times_; }
  // Times a stage that the caller runs itself.
  void timed(std::string_view name, const std::function<void()>& stage);

 private:
  PlannedModel plan_as_given(Graph graph);
  // As transforms/cost_report has it.
  double seconds_of_groups(const PlannedModel& model, double enough = std::numeric_limits<double>::infinity()) const;
  double seconds_of(const PlannedModel& model) const;
  bool is_dearer_than_unchanged(const PlannedModel& planned, const Graph& graph);
  PlannedModel cheaper_of(PlannedModel rewritten, const Graph& graph);
  PlannedModel plan_as_asked(Graph graph);
  void run_part(CompilationPart part, CompilationState& state);
  void run(const Pass& pass, CompilationState& state);  // timed, shown, verified

  PipelineOptions options_;
  std::vector<StageTime> times_;
  std::shared_ptr<FormMemory> forms_ = std::make_shared<FormMemory>();  // of all plans of a model
};

}  // namespace fusec
