// Prints the types of the host interface, M_context, M_libraries and M_args, for out.cu and for its header.
#pragma once

#include <string>

#include "codegen/host/host_names.h"
#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

// The text is plain C.
std::string host_types(const Graph& graph, const LaunchPlan& launch, const HostNames& names);

}  // namespace fusec
