#include "model_cost.h"

#include "predicted_model.h"
#include "transforms/cost_report.h"

namespace fusec {
namespace {

// Under another strategy, with everything else as the user has it but a plan, which belongs to one strategy.
PlannedModel planned_as(const Graph& file, Strategy strategy, PipelineOptions options) {
  options.strategy = strategy;
  options.plan_file.clear();
  options.plan_text.clear();
  options.before_pass = options.after_pass = nullptr;
  return Pipeline(std::move(options)).plan(file);
}

PredictedModel predicted_as(const Graph& file, Strategy strategy, const PipelineOptions& options) {
  const PlannedModel planned = planned_as(file, strategy, options);
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

// By node of the file.
void sort_by_node(const PlannedModel& unfused, PredictedModel& predicted) {
  std::vector<Prediction> alone(unfused.graph.nodes.size());
  for (GroupId g = 0; g < predicted.groups.size(); ++g)
    for (const NodeId n : unfused.plan.groups[g].nodes) alone[n] = predicted.groups[g];
  predicted.groups = std::move(alone);
}

}  // namespace

std::string cost_report_of(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                           const PipelineOptions& options) {
  const PredictedModel own = predicted(planned, launch, options);
  const PlannedModel apart = planned_as(file, Strategy::kUnfused, options);
  const std::optional<LaunchPlan> apart_launch = launch_plan_of(apart, options);
  PredictedModel unfused = predicted(apart, apart_launch ? &*apart_launch : nullptr, options);
  sort_by_node(apart, unfused);
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
  for (const Strategy strategy : {Strategy::kUnfused, Strategy::kTvm, Strategy::kFull}) {
    const Prediction total = strategy == options.strategy     ? own.total()
                             : strategy == Strategy::kUnfused ? unfused.total()
                                                              : predicted_as(file, strategy, options).total();
    context.totals.emplace_back(strategy, total);
  }
  return cost_report(planned.graph, planned.plan, context);
}

}  // namespace fusec
