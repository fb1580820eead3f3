// The pipeline from a graph to emitted source and compiled modules. It runs the passes of src/passes.h. The programs
// and the library API use it.
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
#include "ir/deadline.h"
#include "ir/fusion_plan.h"
#include "ir/limits.h"
#include "schedule/form_memory.h"
#include "schedule/lowering/kernel_memory.h"
#include "schedule/target/target.h"
#include "transforms/apply_layouts.h"
#include "transforms/partition_report.h"
#include "transforms/patterns/pattern_list.h"
#include "transforms/plan_file.h"

namespace fusec {

// Nodes of the largest model for which a report generates source to count launches, and makes a second plan to compare
// with.
inline constexpr std::size_t kLargestToRun = 20000;

struct Pass;
struct CompilationState;
enum class CompilationPart : std::uint8_t;

struct PipelineOptions {
  Strategy strategy = Strategy::kFull;
  Target target;
  bool own_target = false;  // the user gave the target's figures
  EmitOptions emit;
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;  // 0: no limit under `tvm` and `none`, the limit of a kernel under `full`
  std::vector<std::string> no_fuse_ops, no_fuse_nodes;
  PatternList patterns;  // in the order in which they are tried
  LeftOut left_out;      // disabled passes and patterns; `patterns` lacks the latter. A written plan names both
  std::string plan_file, plan_text;  // a plan to compile with, as a file or as text; "" for none
  double plan_seconds = 0;           // after which the best plan so far is taken; 0: no deadline
  CompileOptions compile;
  Limits limits;
  // FUSEC_DEBUG: 1 verifies the graph after every rewriting pass (debug builds always do). 2 also adds the graph before
  // the faulty pass to the error.
  int debug_level = 0;
  // Called with the graph before and after each pass, if there is a graph.
  std::function<void(const Pass&, const Graph&)> before_pass, after_pass;
  // Called as each pass begins.
  std::function<void(const Pass&)> progress;
};

// Wall time of one stage, for --time-passes.
struct StageTime {
  std::string name;
  double seconds;
};

// The options with these passes and patterns disabled.
PipelineOptions leaving_out(PipelineOptions options, const LeftOut& left_out);

struct PlannedModel {
  Graph graph;  // after the transforms
  std::vector<PatternClaim> claims;
  std::vector<OpPattern> kinds;
  FusionPlan plan;
  PartitionReportContext report;
  std::vector<std::string> rewriting_patterns = {};  // those that replaced something; the plan names those that claimed
  // Disabled by the user, or by Pipeline::plan because rewriting was slower or since the deadline had passed.
  LeftOut left_out = {};
  std::string ended_in = "";                // the pass that the deadline ended or left out first; "" for none
  std::optional<PlanWithLayouts> laid_out;  // the graph and plan with changed layouts (choose-layouts), if any changed
  std::shared_ptr<LoweringMemory> lowering = {};  // of groups of `graph`; null: none is kept

  // The graph and plan that source is generated from.
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
  // Runs the passes up to the fusion plan. On a user's target, or if the plan is predicted to be slower than `tvm` or
  // `none`, also plans without rewriting, claims and merges, and returns the plan that is predicted to be the fastest.
  PlannedModel plan(Graph graph);
  // Lowers, schedules and emits; completes the report's launches and kernels. `units` as in emit_file.
  GeneratedModel generate(PlannedModel& planned, std::size_t units);
  // Compiles every unit of the file to PTX and cubin. Throws Error(kEnvironment) if that fails.
  std::vector<CompiledModule> compile(const Nvrtc& nvrtc, const GeneratedModel& generated);

  // Runs a single graph pass.
  Graph rewritten(Graph graph, const Pass& pass);

  const std::vector<StageTime>& times() const { return times_; }
  // Runs a stage of the caller's and records its time.
  void timed(std::string_view name, const std::function<void()>& stage);
  // Records the time of a stage that came before.
  void record(std::string_view name, double seconds) { times_.push_back({std::string(name), seconds}); }

 private:
  PlannedModel plan_as_given(Graph graph);
  // Predicted seconds of all groups (transforms/cost_report.h).
  double seconds_of_groups(const PlannedModel& model, double enough = std::numeric_limits<double>::infinity()) const;
  double seconds_of(const PlannedModel& model) const;
  bool is_dearer_than_unchanged(const PlannedModel& planned, const Graph& graph);
  PlannedModel cheaper_of(PlannedModel rewritten, const Graph& graph);
  PlannedModel plan_as_asked(Graph graph);
  void run_part(CompilationPart part, CompilationState& state);
  bool is_wanted(const Pass& pass) const;
  void run(const Pass& pass, CompilationState& state);  // times, shows and verifies the pass, too

  PipelineOptions options_;
  std::vector<StageTime> times_;
  Deadline deadline_;                                                   // of planning and of choosing layouts
  std::shared_ptr<FormMemory> forms_ = std::make_shared<FormMemory>();  // shared by all plans of a model
};

}  // namespace fusec
