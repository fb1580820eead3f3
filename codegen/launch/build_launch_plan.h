// Assigns memory to the steps of a lowered plan: a buffer for every value, one workspace arena planned by lifetime, the
// model's identifier and final kernel names.
#pragma once

#include "codegen/launch/launch_plan.h"
#include "codegen/launch/lower_plan.h"

namespace fusec {

// Offsets in the arena are multiples of 256 bytes.
LaunchPlan build_launch_plan(const Graph& graph, LoweredPlan lowered);

}  // namespace fusec
