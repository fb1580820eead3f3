// The predicted cost of a planned model as it is launched: its groups with the launches of the launch plan, and the
// copies into the caller's buffers.
#pragma once

#include <optional>
#include <vector>

#include "codegen/launch/launch_plan.h"
#include "pipeline.h"
#include "schedule/cost/cost_model.h"

namespace fusec {

struct PredictedModel {
  std::vector<Prediction> groups;
  Prediction at_end;  // copies that belong to no group

  Prediction total() const;
};

// The launch plan of a model, for its steps: without variants. Nothing if no source can be generated (an op without a
// launcher), or if the model has more than kLargestToRun nodes.
std::optional<LaunchPlan> launch_plan_of(const PlannedModel& planned, const PipelineOptions& options);

// `launch` may be null; the launches are then those of the cost model.

PredictedModel predicted(const PlannedModel& planned, const LaunchPlan* launch, const PipelineOptions& options);

}  // namespace fusec
