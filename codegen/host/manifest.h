// Prints the manifest: the launch plan as JSON, enough for a front end to launch the model without the host part.
// Sizes, grids and offsets are formulas over the model's symbols, in the syntax of dimension strings.
#pragma once

#include <string>

#include "codegen/launch/launch_plan.h"
#include "ir/fusion_plan.h"
#include "schedule/target/target.h"

namespace fusec {

std::string manifest(const Graph& graph, const FusionPlan& plan, const LaunchPlan& launch, const Target& target);

}  // namespace fusec
