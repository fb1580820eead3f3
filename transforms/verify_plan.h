// Is this a plan for this graph? Holds for plans of our own (a fault is then a bug) and for edited ones (an error that
// says why).
//
// A plan is legal when every node is in one group (or is listed as recomputed in the others), groups can be executed
// one after the other and are listed so, no group has more nodes or arguments than the plan's limits, and what may not
// be fused (opaque nodes, nodes kept apart) is alone.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/fusion_plan.h"

namespace fusec {

struct PlanFault {
  GroupId group = kNone;  // where the fault is
  std::string what;       // "the group would have 300 nodes, the limit is 256"
};

std::optional<PlanFault> find_plan_fault(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

// The part of it that needs no order: every node in a group, and in one alone.
std::optional<PlanFault> find_cover_fault(const Graph& graph, const FusionPlan& plan);

// Throws InternalError where there is a fault.
void verify_plan(const Graph& graph, std::span<const OpPattern> kinds, const FusionPlan& plan);

}  // namespace fusec
