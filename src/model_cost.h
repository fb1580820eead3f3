// The cost report of a planned model: beside its own groups, the same model under every strategy.
#pragma once

#include <string>

#include "pipeline.h"

namespace fusec {

// `file` is the graph as it was read (symbols at the values that are wanted), `planned` what the pipeline made of it.
std::string cost_report_of(const Graph& file, const PlannedModel& planned, const PipelineOptions& options);

}  // namespace fusec
