// The layers of a planned model: which of its groups are repeated blocks (analysis/repeated_blocks.h). Groups are equal
// where they compute the same ops with the same attributes on tensors of the same types, wired alike.
#pragma once

#include <vector>

#include "analysis/repeated_blocks.h"
#include "ir/fusion_plan.h"

namespace fusec {

struct RepeatedGroups {
  std::vector<GroupId> items;         // the groups of every run in execution order: those prepared once are left out
  std::vector<RepeatedBlock> blocks;  // of places in `items`
};

RepeatedGroups repeated_groups(const Graph& graph, const FusionPlan& plan);

}  // namespace fusec
