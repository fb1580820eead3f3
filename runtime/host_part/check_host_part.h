// Holds a compiled host part against the launch plan that it was printed from: the launch asked for, and the same with
// other sizes, wrong extents, null and misaligned pointers, a runtime that refuses.
#pragma once

#include "runtime/host_part/host_part.h"

namespace fusec {

// What is wrong with the host part, in words; empty where nothing is. `arguments` are a good launch. Creates contexts
// of its own: the caller creates again.
std::vector<std::string> check_host_part(HostPart& host, const Graph& graph, const LaunchPlan& plan,
                                         const HostArguments& arguments);

}  // namespace fusec
