// Emits the host functions that check the caller's arguments before anything is enqueued:
//
//   check_constants(ctx, args)           extents of constants: all that M_prepare needs
//   solve(ctx, args, n)                  computes the symbols from the extents, then checks every extent and bound
//   check_pointers(ctx, args, n)         for M_launch: alignment, and no null pointer that a launch accesses
//   check_constant_pointers(ctx, args)   for M_prepare: the pointers of the constants
//
// A tensor without elements may be null. Extents and pointers are checked separately, so that a caller can ask for the
// workspace size before it has allocated memory.
#pragma once

#include <string>

#include "codegen/host/host_names.h"

namespace fusec {

std::string check_functions(const Graph& graph, const LaunchPlan& launch, const HostNames& names);

}  // namespace fusec
