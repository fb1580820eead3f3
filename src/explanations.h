// Explains why nodes of the model's file are, or are not, in one kernel: --explain, --require-one-kernel and the
// library's explain functions.
#pragma once

#include <string>
#include <vector>

#include "pipeline.h"
#include "transforms/explain.h"

namespace fusec {

// `launch` is the launch plan that code generation made. Names are those of the file's nodes, even if other nodes
// compute their values now. Throws Error(kInput) for a name that no node has.
Explanation explanation_of(const PlannedModel& planned, const LaunchPlan& launch, const PatternList& patterns,
                           const std::vector<std::string>& names);

// Throws Error(kInput), with the reasons, unless the nodes are in one kernel.
void require_one_kernel(const PlannedModel& planned, const LaunchPlan& launch, const PatternList& patterns,
                        const std::vector<std::string>& names);

// The explanation as text or JSON. Without names it covers all groups and all edges between them.
std::string explained(const PlannedModel& planned, const LaunchPlan& launch, const PatternList& patterns,
                      const std::vector<std::string>& names, bool json);

// A sentence for each pattern of the user's files that changed nothing, by file and line; none where the plan is given.
std::vector<std::string> idle_patterns(const PlannedModel& planned, const PipelineOptions& options);

}  // namespace fusec
