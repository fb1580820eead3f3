#include "model_cost.h"

#include "predicted_model.h"
#include "transforms/cost_report.h"

namespace fusec {
namespace {

PredictedModel predicted_as(const Graph& file, Strategy strategy, const PipelineOptions& options) {
  const PlannedModel planned = Pipeline(options_as(strategy, options)).plan(file);
  const std::optional<LaunchPlan> launch = launch_plan_of(planned, options);
  return predicted(planned, launch ? &*launch : nullptr, options);
}

// For each group the file's nodes that it stands for, each alone; a node that several groups compute is with the first,
// and what no launch computes is elsewhere.
void compare_with_unfused(const Graph& file, const PredictedModel& unfused, const PlannedModel& planned,
                          CostReportContext& context) {
  const Origins& origins = planned.report.stands_for;
  std::vector<std::uint8_t> seen(file.nodes.size(), 0);
  context.unfused.resize(planned.plan.groups.size());
  context.fused.resize(planned.plan.groups.size(), 0);
  for (GroupId g = 0; g < planned.plan.groups.size(); ++g) {
    if (planned.plan.groups[g].prepared) continue;
    const auto add = [&](NodeId node) {
      context.fused[g] += unfused.groups[node].launches > 0 ? 1 : 0;
      if (!std::exchange(seen[node], 1)) context.unfused[g] += unfused.groups[node];
    };
    for (const NodeId n : planned.plan.groups[g].nodes) {
      if (origins.empty()) add(n);
      if (!origins.empty())
        for (const std::string_view origin : origins[n])
          if (const NodeId node = file.find_node(origin); node != kNone) add(node);
    }
  }
  context.unfused_elsewhere = unfused.at_end;
  for (NodeId n = 0; n < file.nodes.size(); ++n) {
    if (seen[n]) continue;
    context.elsewhere.push_back(file.nodes[n].name);
    context.unfused_elsewhere += unfused.groups[n];
  }
}

}  // namespace

PipelineOptions options_as(Strategy strategy, PipelineOptions options) {
  options.strategy = strategy;
  options.plan_file.clear();
  options.plan_text.clear();
  options.before_pass = options.after_pass = nullptr;
  return options;
}

PredictedModel unfused_cost(const PlannedModel& apart, const LaunchPlan* launch, const PipelineOptions& options) {
  PredictedModel unfused = predicted(apart, launch, options);
  std::vector<Prediction> alone(apart.graph.nodes.size());
  for (GroupId g = 0; g < unfused.groups.size(); ++g)
    for (const NodeId n : apart.plan.groups[g].nodes) alone[n] = unfused.groups[g];
  unfused.groups = std::move(alone);
  return unfused;
}

CostReportContext compared_cost(const Graph& file, const PlannedModel& planned, const PredictedModel& own,
                                const PredictedModel& unfused, const PipelineOptions& options) {
  CostReportContext context{.nodes = planned.report,
                            .target = options.target,
                            .groups = own.groups,
                            .unfused = {},
                            .fused = {},
                            .numerics = numerics_asked_for(options.emit),
                            .at_end = own.at_end,
                            .unfused_elsewhere = {},
                            .elsewhere = {},
                            .totals = {}};
  compare_with_unfused(file, unfused, planned, context);
  return context;
}

std::string cost_report_of(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                           const PipelineOptions& options) {
  const PredictedModel own = predicted(planned, launch, options);
  const PlannedModel apart = Pipeline(options_as(Strategy::kUnfused, options)).plan(file);
  const std::optional<LaunchPlan> apart_launch = launch_plan_of(apart, options);
  const PredictedModel unfused = unfused_cost(apart, apart_launch ? &*apart_launch : nullptr, options);
  CostReportContext context = compared_cost(file, planned, own, unfused, options);
  for (const Strategy strategy : {Strategy::kUnfused, Strategy::kTvm, Strategy::kFull}) {
    const Prediction total = strategy == options.strategy     ? own.total()
                             : strategy == Strategy::kUnfused ? unfused.total()
                                                              : predicted_as(file, strategy, options).total();
    context.totals.emplace_back(strategy, total);
  }
  return cost_report(planned.graph, planned.plan, context);
}

}  // namespace fusec
