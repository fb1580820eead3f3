// From a graph to emitted source, stage by stage; what the programs and the library API are made of.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/target.h"
#include "codegen/emit_file.h"
#include "codegen/emit_options.h"
#include "codegen/launch_plan.h"
#include "codegen/nvrtc.h"
#include "ir/fusion_plan.h"
#include "transforms/partition_report.h"

namespace fusec {

struct PipelineOptions {
  Strategy strategy = Strategy::kFull;
  Target target;
  EmitOptions emit;
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;  // 0: none under `tvm` and `none`, what a kernel can hold under `full`
  std::vector<std::string> no_fuse_ops, no_fuse_nodes;
  std::string plan_file;  // an edited plan to compile with; "" for none
  CompileOptions compile;
  // FUSEC_DEBUG: 1 verifies the graph after every pass that changes it (debug builds always do), 2 also tells, in the
  // error, the graph before the pass that broke it.
  int debug_level = 0;
  // Called with the graph before and after each pass that may change it.
  std::function<void(std::string_view pass, const Graph&graph)> before_pass, after_pass;
};

// Wall time of one stage, for --time-passes.
struct StageTime {
  std::string name;
  double seconds;
};

struct PlannedModel {
  Graph graph;  // after the transforms
  std::vector<OpPattern> kinds;
  FusionPlan plan;
  PartitionReportContext report;
};

struct GeneratedModel {
  LaunchPlan launch;
  EmittedFile file;
};

class Pipeline {
 public:
  explicit Pipeline(PipelineOptions options) : options_(std::move(options)) {}

  const PipelineOptions& options() const { return options_; }
  PlannedModel plan(Graph graph);
  // Lowers, schedules and emits; completes the report's launches and kernels. `units` as in emit_file.
  GeneratedModel generate(PlannedModel& planned, std::size_t units);
  // PTX and cubin of every unit of the file. Throws Error(kEnvironment) where it does not compile.
  std::vector<CompiledModule> compile(const Nvrtc& nvrtc, const GeneratedModel& generated);

  // A pass from graph to graph: timed, shown, verified.
  void run_pass(const std::string& name, Graph& graph, const std::function<void()>& pass);

  const std::vector<StageTime>& times() const { return times_; }
  // Times a stage that the caller runs itself.
  void timed(const std::string& name, const std::function<void()>& stage);

 private:
  PipelineOptions options_;
  std::vector<StageTime> times_;
};

}  // namespace fusec
