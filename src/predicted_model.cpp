#include "predicted_model.h"

#include "codegen/launch/build_launch_plan.h"
#include "codegen/launch/lower_plan.h"
#include "ir/error.h"
#include "schedule/lowering/cublaslt_call_cost.h"
#include "transforms/cost_report.h"

namespace fusec {

Prediction PredictedModel::total() const {
  Prediction sum = sum_of(groups);
  sum += at_end;
  return sum;
}

std::optional<LaunchPlan> launch_plan_of(const PlannedModel& planned, const PipelineOptions& options) {
  if (planned.graph.nodes.size() > kLargestToRun) return std::nullopt;
  try {
    const Graph& graph = planned.source_graph();
    EmitOptions emit = options.emit;
    emit.variants = false;
    return build_launch_plan(graph, lower_plan(graph, planned.source_plan(), options.target, emit));
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Uses the graph with changed layouts, if there is one. The resize removes its added groups, which prepare weights.
PredictedModel predicted(const PlannedModel& planned, const LaunchPlan* launch, const PipelineOptions& options) {
  const Target& target = options.target;
  PredictedModel model{
      .groups = predict_groups(planned.source_graph(), planned.source_plan(), target, options.emit.numerics),
      .at_end = {}};
  model.groups.resize(planned.plan.groups.size());
  if (!launch) return model;
  std::vector<std::uint32_t> steps(model.groups.size(), 0);
  for (const LaunchStep& step : launch->steps) {
    if (step.group < steps.size()) ++steps[step.group];
    if (step.kind != LaunchStep::Kind::kCopy) continue;
    const auto bytes = static_cast<double>(value_at_hint(step.bytes, planned.graph.symbols));
    (step.group < steps.size() ? model.groups[step.group] : model.at_end) += predict_pass(bytes, bytes, target);
  }
  for (GroupId g = 0; g < steps.size(); ++g) {
    Prediction& group = model.groups[g];
    const double more = (static_cast<double>(steps[g]) - group.launches) * target.launch_seconds;
    group.launch += more;
    group.total += more;
    group.launches = steps[g];
  }
  return model;
}

}  // namespace fusec
