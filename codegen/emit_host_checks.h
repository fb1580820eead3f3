// The functions of the host part that look at what the caller gives before anything is enqueued:
//
//   solve(ctx, args, n)     finds the symbols, checks every extent, every bound and every pointer's alignment
//   check_constants(...)    the same of constants alone, for M_prepare: the inputs need not be there yet
#pragma once

#include <string>

#include "codegen/host_names.h"

namespace fusec {

std::string solve_function(const Graph& graph, const LaunchPlan& launch, const HostNames& names);
std::string check_constants_function(const Graph& graph, const LaunchPlan& launch, const HostNames& names);

}  // namespace fusec
