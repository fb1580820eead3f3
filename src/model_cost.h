// Makes the cost report of a planned model, with a comparison to the same model under every strategy. If source can be
// generated, launches and copies into the caller's buffers are counted from the launch plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline.h"
#include "predicted_model.h"
#include "transforms/cost_report.h"

namespace fusec {

// The same options with another strategy and without a given plan, which belongs to one strategy.
PipelineOptions options_as(Strategy strategy, PipelineOptions options);

// A planned model compared with one kernel per node of the file.
struct ComparedModel {
  PredictedModel own, unfused;               // own: by group; unfused: by node of the file
  std::vector<Prediction> unfused_of_group;  // by group: its file nodes as one kernel each
  std::vector<std::uint32_t> fused;          // by group: number of its file nodes that would be launches of their own
  Prediction unfused_elsewhere;              // copies at the end, and nodes that are dropped, folded or prepared
  std::vector<std::string> elsewhere;        // names of these nodes
};

// `file` is the graph as it was read, with hints at the wanted values of symbols. `planned` is what the pipeline made
// of it. `launch` may be null.
ComparedModel compared_with_unfused(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                                    const PipelineOptions& options);

// The prediction for `apart`, a model planned under `none`, by node of the file.
PredictedModel unfused_cost(const PlannedModel& apart, const LaunchPlan* launch, const PipelineOptions& options);
ComparedModel compared_with_unfused(const Graph& file, const PlannedModel& planned, PredictedModel own,
                                    PredictedModel unfused);

// The context of a cost report without totals. It refers to `planned` and `options`.
CostReportContext report_context(const PlannedModel& planned, const ComparedModel& compared,
                                 const PipelineOptions& options);

std::string cost_report_of(const Graph& file, const PlannedModel& planned, const ComparedModel& compared,
                           const PipelineOptions& options);
std::string cost_report_of(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                           const PipelineOptions& options);

}  // namespace fusec
