// Tests a compiled host part against its launch plan: the given launch, other sizes, wrong extents, null and misaligned
// pointers, and a runtime that refuses operations.
#pragma once

#include "runtime/host_part/host_part.h"

namespace fusec {

// The faults of the host part in words; empty if there are none. `arguments` must be a valid launch. Replaces the host
// part's context, so the caller must create one again.
std::vector<std::string> check_host_part(HostPart& host, const Graph& graph, const LaunchPlan& plan,
                                         const HostArguments& arguments);

}  // namespace fusec
