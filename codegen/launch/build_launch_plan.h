// Gives the steps of a lowered plan their memory: every value's buffer, one workspace arena planned by lifetime, the
// model's identifier and the kernels' final names.
#pragma once

#include "codegen/launch/launch_plan.h"
#include "codegen/launch/lower_plan.h"

namespace fusec {

// Offsets in the arena are multiples of 256 bytes.
LaunchPlan build_launch_plan(const Graph& graph, LoweredPlan lowered);

}  // namespace fusec
