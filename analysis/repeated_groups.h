// Finds the layers of a planned model: which groups form repeated blocks (analysis/repeated_blocks.h). Two groups are
// equal if they compute the same ops with the same attributes on tensors of the same types, with the same wiring.
#pragma once

#include <vector>

#include "analysis/repeated_blocks.h"
#include "ir/fusion_plan.h"

namespace fusec {

struct RepeatedGroups {
  std::vector<GroupId> items;  // the groups that every run executes, in execution order; prepared groups are left out
  std::vector<RepeatedBlock> blocks;  // blocks of indices into `items`
};

RepeatedGroups repeated_groups(const Graph& graph, const FusionPlan& plan);

}  // namespace fusec
