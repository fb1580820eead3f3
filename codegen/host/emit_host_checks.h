// The functions of the host part that check what the caller gives before anything is enqueued:
//
//   check_constants(ctx, args)           the extents of constants: all that M_prepare needs to know
//   solve(ctx, args, n)                  finds the symbols from the extents; checks every extent and every bound
//   check_pointers(ctx, args, n)         for M_launch: alignment, and null where a launch reads or writes memory
//   check_constant_pointers(ctx, args)   the same for M_prepare, of the constants alone
//
// A tensor without elements may be null. The extents are checked apart from the pointers, so that a caller may ask for
// the size of the workspace before there is any memory.
#pragma once

#include <string>

#include "codegen/host/host_names.h"

namespace fusec {

std::string check_functions(const Graph& graph, const LaunchPlan& launch, const HostNames& names);

}  // namespace fusec
