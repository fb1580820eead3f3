// Emits the header that a C or C++ program includes to link against out.cu.
#pragma once

#include <string>

#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

// Types and declarations of the host interface, with comments on call order, lifetimes and sharing.
std::string emit_header(const Graph& graph, const LaunchPlan& launch);

}  // namespace fusec
