// What a planned model is predicted to take as it is launched: its groups, the launches that they really have, and the
// copies to where the caller wants a result, which show in the launch plan alone.
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

// Nothing where no source can be made of it (an op without a launcher), or none is worth it: launches are then those
// that the cost model foresees.
std::optional<LaunchPlan> launch_plan_of(const PlannedModel& planned, const PipelineOptions& options);

PredictedModel predicted(const PlannedModel& planned, const LaunchPlan* launch, const PipelineOptions& options);

}  // namespace fusec
