#include "model_cost.h"

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

// For each group the file's nodes that it stands for, each alone; a node that several groups compute is with the first.
std::vector<Prediction> unfused_beside(const Graph& file, const std::vector<Prediction>& alone,
                                       const PlannedModel& planned) {
  std::vector<Prediction> beside(planned.plan.groups.size());
  const Origins& origins = planned.report.stands_for;
  for (NodeId n = 0; n < planned.graph.nodes.size(); ++n) {
    Prediction& group = beside[planned.plan.group_of[n]];
    if (origins.empty()) {
      group += alone[n];
      continue;
    }
    for (const std::string_view origin : origins[n])
      if (const NodeId node = file.find_node(origin); node != kNone) group += alone[node];
  }
  return beside;
}

}  // namespace

std::string cost_report_of(const Graph& file, const PlannedModel& planned, const PipelineOptions& options) {
  const PlannedModel unfused = planned_as(file, Strategy::kUnfused, options);
  const std::vector<Prediction> of_groups = predict_groups(unfused.graph, unfused.plan, options.target);
  std::vector<Prediction> alone(file.nodes.size());
  for (GroupId g = 0; g < of_groups.size(); ++g)
    for (const NodeId n : unfused.plan.groups[g].nodes) alone[n] += of_groups[g];
  CostReportContext context{.nodes = planned.report,
                            .target = options.target,
                            .groups = predict_groups(planned.graph, planned.plan, options.target),
                            .unfused = unfused_beside(file, alone, planned),
                            .numerics = numerics_asked_for(options.emit),
                            .totals = {}};
  for (const Strategy strategy : {Strategy::kUnfused, Strategy::kTvm, Strategy::kFull}) {
    Prediction total;
    if (strategy == options.strategy) {
      total = sum_of(context.groups);
    } else if (strategy == Strategy::kUnfused) {
      total = sum_of(of_groups);
    } else {
      const PlannedModel other = planned_as(file, strategy, options);
      total = sum_of(predict_groups(other.graph, other.plan, options.target));
    }
    context.totals.emplace_back(strategy, total);
  }
  return cost_report(planned.graph, planned.plan, context);
}

}  // namespace fusec
