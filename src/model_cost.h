// The cost report of a planned model: beside its own groups, the same model under every strategy. Launches, and copies
// to where the caller wants a result, are those of the steps that a launch really has, wherever source can be made.
#pragma once

#include <string>

#include "pipeline.h"

namespace fusec {

// `file` is the graph as it was read (symbols at the values that are wanted), `planned` what the pipeline made of it.
// `launch`: what was made of it, if anything was.
std::string cost_report_of(const Graph& file, const PlannedModel& planned, const LaunchPlan* launch,
                           const PipelineOptions& options);

}  // namespace fusec
