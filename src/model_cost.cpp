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

// Assigns the unfused predictions of the file's nodes to the groups that compute them. A node counts for its first
// group; a node that no launch computes counts as elsewhere.
void assign_unfused(const Graph& file, const PlannedModel& planned, ComparedModel& model) {
  const PredictedModel& unfused = model.unfused;
  const Origins& origins = planned.report.stands_for;
  std::vector<std::uint8_t> seen(file.nodes.size(), 0);
  model.unfused_of_group.resize(planned.plan.groups.size());
  model.fused.resize(planned.plan.groups.size(), 0);
  for (GroupId g = 0; g < planned.plan.groups.size(); ++g) {
    if (planned.plan.groups[g].prepared) continue;
    const auto add = [&](NodeId node) {
      model.fused[g] += unfused.groups[node].launches > 0 ? 1 : 0;
      if (!std::exchange(seen[node], 1)) model.unfused_of_group[g] += unfused.groups[node];
    };
    for (const NodeId n : planned.plan.groups[g].nodes) {
      if (origins.empty()) add(n);
      if (!origins.empty())
        for (const std::string_view origin : origins[n])
          if (const NodeId node = file.find_node(origin); node != kNone) add(node);
    }
  }
  model.unfused_elsewhere = unfused.at_end;
  for (NodeId n = 0; n < file.nodes.size(); ++n) {
    if (seen[n]) continue;
    model.elsewhere.push_back(file.nodes[n].name);
    model.unfused_elsewhere += unfused.groups[n];
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

ComparedModel compared_with_unfused(const Graph& file, const PlannedModel& planned, PredictedModel own,
                                    PredictedModel unfused) {
  ComparedModel model{.own = std::move(own), .unfused = std::move(unfused)};
  assign_unfused(file, planned, model);
  return model;
}

ComparedModel compared_with_unfused(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                                    const PipelineOptions& options) {
  const PlannedModel apart = Pipeline(options_as(Strategy::kUnfused, options)).plan(file);
  const std::optional<LaunchPlan> apart_launch = launch_plan_of(apart, options);
  return compared_with_unfused(file, planned, predicted(planned, launch, options),
                               unfused_cost(apart, apart_launch ? &*apart_launch : nullptr, options));
}

CostReportContext report_context(const PlannedModel& planned, const ComparedModel& compared,
                                 const PipelineOptions& options) {
  return {.nodes = planned.report,
          .target = options.target,
          .groups = compared.own.groups,
          .unfused = compared.unfused_of_group,
          .fused = compared.fused,
          .numerics = requested_numerics(options.emit),
          .at_end = compared.own.at_end,
          .unfused_elsewhere = compared.unfused_elsewhere,
          .elsewhere = compared.elsewhere,
          .totals = {}};
}

std::string cost_report_of(const Graph& file, const PlannedModel& planned, const ComparedModel& compared,
                           const PipelineOptions& options) {
  CostReportContext context = report_context(planned, compared, options);
  for (const Strategy strategy : {Strategy::kUnfused, Strategy::kTvm, Strategy::kFull}) {
    const Prediction total = strategy == options.strategy     ? compared.own.total()
                             : strategy == Strategy::kUnfused ? compared.unfused.total()
                                                              : predicted_as(file, strategy, options).total();
    context.totals.emplace_back(strategy, total);
  }
  return cost_report(planned.graph, planned.plan, context);
}

std::string cost_report_of(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                           const PipelineOptions& options) {
  return cost_report_of(file, planned, compared_with_unfused(file, planned, launch, options), options);
}

}  // namespace fusec
