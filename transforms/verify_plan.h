// Checks that a plan is legal for a graph. In a generated plan a fault is a bug; in an edited plan it is an error of
// the user.
//
// A plan is legal if
//   - every node is in one group, and listed as recomputed in any other group that has it,
//   - the groups are listed in an execution order,
//   - no group exceeds the plan's limits of nodes and arguments,
//   - nodes that may not be fused (opaque ones, and those that the user keeps apart) are alone in their groups.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/fusion_plan.h"

namespace fusec {

struct PlanFault {
  GroupId group = kNone;  // the faulty group, kNone if no group is to blame
  std::string what;       // "the group would have 300 nodes, the limit is 256"
};

std::optional<PlanFault> find_plan_fault(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

// Checks only the first condition, which does not depend on the order of groups.
std::optional<PlanFault> find_cover_fault(const Graph& graph, const FusionPlan& plan);

// Throws InternalError if there is a fault.
void verify_plan(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

}  // namespace fusec
