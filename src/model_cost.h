// The cost report of a planned model: beside its own groups, the same model under every strategy. Launches, and copies
// to where the caller wants a result, are those of the steps that a launch really has, wherever source can be made.
#pragma once

#include <string>

#include "pipeline.h"
#include "predicted_model.h"
#include "transforms/cost_report.h"

namespace fusec {

// Under another strategy, with everything else as the user has it but a plan, which belongs to one strategy.
PipelineOptions options_as(Strategy strategy, PipelineOptions options);

// What `apart`, planned under `none`, is predicted to take, by node of the file.
PredictedModel unfused_cost(const PlannedModel& apart, const LaunchPlan* launch, const PipelineOptions& options);

// Of each group what it is predicted to take, and the file's nodes that it stands for alone. Without totals. Refers to
// `planned` and `options`.
CostReportContext compared_cost(const Graph& file, const PlannedModel& planned, const PredictedModel& own,
                                const PredictedModel& unfused, const PipelineOptions& options);

// `file` is the graph as it was read (symbols at the values that are wanted), `planned` what the pipeline made of it.
// `launch`: what was made of it, if anything was.
std::string cost_report_of(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                           const PipelineOptions& options);

}  // namespace fusec
