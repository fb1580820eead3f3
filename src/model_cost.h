// The cost report of a planned model: beside its own groups, the same model under every strategy. Launches, and copies
// to where the caller wants a result, are those of the steps that a launch really has, wherever source can be made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline.h"
#include "predicted_model.h"
#include "transforms/cost_report.h"

namespace fusec {

// Under another strategy, with everything else as the user has it but a plan, which belongs to one strategy.
PipelineOptions options_as(Strategy strategy, PipelineOptions options);

// A planned model beside the same nodes as kernels of their own.
struct ComparedModel {
  PredictedModel own, unfused;               // by group; by node of the file
  std::vector<Prediction> unfused_of_group;  // beside each group: the file's nodes in it
  std::vector<std::uint32_t> fused;          // how many of them would be launches alone
  Prediction unfused_elsewhere;              // copies at the end, and nodes that are dropped, folded or prepared
  std::vector<std::string> elsewhere;        // those nodes
};

// `file` is the graph as it was read (symbols at the values that are wanted), `planned` what the pipeline made of it.
// `launch`: what was made of it, if anything was.
ComparedModel compared_with_unfused(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                                    const PipelineOptions& options);

// What `apart`, planned under `none`, is predicted to take, by node of the file.
PredictedModel unfused_cost(const PlannedModel& apart, const LaunchPlan* launch, const PipelineOptions& options);
ComparedModel compared_with_unfused(const Graph& file, const PlannedModel& planned, PredictedModel own,
                                    PredictedModel unfused);

// Without totals. Refers to `planned` and `options`.
CostReportContext report_context(const PlannedModel& planned, const ComparedModel& compared,
                                 const PipelineOptions& options);

std::string cost_report_of(const Graph& file, const PlannedModel& planned, const ComparedModel& compared,
                           const PipelineOptions& options);
std::string cost_report_of(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                           const PipelineOptions& options);

}  // namespace fusec
