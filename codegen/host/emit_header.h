// The header of an emitted file: what a program in C or C++ includes that links out.cu.
#pragma once

#include <string>

#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

// Types and declarations of the host interface, with the call sequence, lifetimes, and what may be shared.
std::string emit_header(const Graph& graph, const LaunchPlan& launch);

}  // namespace fusec
