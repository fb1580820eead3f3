#include "pipeline.h"

#include <chrono>
#include <fstream>
#include <sstream>

#include "analysis/annotate.h"
#include "codegen/build_launch_plan.h"
#include "codegen/lower_plan.h"
#include "ir/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "transforms/canonicalize.h"
#include "transforms/fuse.h"
#include "transforms/plan_file.h"
#include "transforms/verify_plan.h"

namespace fusec {
namespace {

std::string read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) throw Error(ErrorKind::kInput, {.file = path, .what = "the file cannot be read"});
  return text.str();
}

std::uint32_t argument_limit(const PipelineOptions& options, const Graph& graph) {
  if (options.max_args != 0 || options.strategy != Strategy::kFull) return options.max_args;
  // Pointers and symbol values take up to 8 bytes each.
  const auto all = static_cast<std::size_t>(options.target.max_parameter_bytes) / 8;
  return static_cast<std::uint32_t>(all > graph.symbols.size() + 8 ? all - graph.symbols.size() : 8);
}

#ifdef NDEBUG
constexpr bool kAlwaysVerify = false;
#else
constexpr bool kAlwaysVerify = true;
#endif

}  // namespace

void Pipeline::timed(const std::string& name, const std::function<void()>& stage) {
  const auto start = std::chrono::steady_clock::now();
  stage();
  times_.push_back({name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
}

void Pipeline::run_pass(const std::string& name, Graph& graph, const std::function<void()>& pass) {
  if (options_.before_pass) options_.before_pass(name, graph);
  const std::string before = options_.debug_level >= 2 ? graph_text(graph) : "";
  timed(name, pass);
  if (kAlwaysVerify || options_.debug_level >= 1) {
    try {
      verify(graph, name);
    } catch (const InternalError& error) {
      if (before.empty()) throw;
      throw InternalError(std::string(error.what()) + "\nthe graph before " + name + ":\n" + before);
    }
  }
  if (options_.after_pass) options_.after_pass(name, graph);
}

PlannedModel Pipeline::plan(Graph graph) {
  PlannedModel planned{std::move(graph), {}, {}, {}};
  planned.report.arch = options_.target.arch;
  timed("keep-apart", [&] { keep_apart(planned.graph, options_.no_fuse_ops, options_.no_fuse_nodes); });
  if (options_.strategy == Strategy::kFull)
    run_pass("canonicalize", planned.graph, [&] {
      CanonicalGraph canonical = canonicalize(planned.graph);
      planned.graph = std::move(canonical.graph);
      planned.report.stands_for = std::move(canonical.stands_for);
      planned.report.dropped = std::move(canonical.dropped);
    });
  timed("annotate", [&] { planned.kinds = annotate(planned.graph, pattern_source(options_.strategy)); });
  FuseOptions fuse_options;
  fuse_options.strategy = options_.strategy;
  fuse_options.max_fused_ops = options_.max_fused_ops;
  fuse_options.max_args = argument_limit(options_, planned.graph);
  timed("fuse", [&] {
    planned.plan = options_.plan_file.empty() ? fuse(planned.graph, planned.kinds, fuse_options)
                                              : read_plan(read_text_file(options_.plan_file), options_.plan_file,
                                                          planned.graph, planned.kinds, fuse_options);
  });
  return planned;
}

GeneratedModel Pipeline::generate(PlannedModel& planned, std::size_t units) {
  GeneratedModel generated;
  LoweredPlan lowered;
  timed("lower", [&] { lowered = lower_plan(planned.graph, planned.plan, options_.target, options_.emit); });
  timed("plan-launch", [&] { generated.launch = build_launch_plan(planned.graph, planned.plan, std::move(lowered)); });
  timed("emit",
        [&] { generated.file = emit_file(planned.graph, planned.plan, generated.launch, options_.target, units); });
  planned.report.group_launches.assign(planned.plan.groups.size(), 0);
  for (const LaunchStep& step : generated.launch.steps)
    if (step.group < planned.report.group_launches.size()) ++planned.report.group_launches[step.group];
  planned.report.launches = static_cast<std::uint32_t>(generated.launch.steps.size());
  planned.report.kernels = static_cast<std::uint32_t>(generated.launch.kernels.size());
  return generated;
}

std::vector<CompiledModule> Pipeline::compile(const Nvrtc& nvrtc, const GeneratedModel& generated) {
  std::vector<CompiledModule> modules;
  timed("nvrtc", [&] { modules = compile_all(nvrtc, generated.file.units, options_.target.arch, options_.compile); });
  return modules;
}

}  // namespace fusec
