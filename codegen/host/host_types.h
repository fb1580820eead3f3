// The types of the host interface, M_context, M_libraries and M_args: printed into out.cu and into its header alike.
#pragma once

#include <string>

#include "codegen/host/host_names.h"
#include "codegen/launch/launch_plan.h"
#include "ir/graph.h"

namespace fusec {

// Plain C.
std::string host_types(const Graph& graph, const LaunchPlan& launch, const HostNames& names);

}  // namespace fusec
