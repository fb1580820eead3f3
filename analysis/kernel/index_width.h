// Decides whether 32 bits suffice for the index arithmetic of a kernel.
#pragma once

#include "analysis/kernel/kernel.h"
#include "ir/bounds.h"
#include "ir/index_expr.h"

namespace fusec {

// True if no subterm of e can leave the range of int within the bounds.
bool fits_int32(const IndexExpr& e, const Bounds& bounds);

// True if index arithmetic can exceed 32 bits. `threads` is the number of threads in a launch.
bool needs_wide_index(const Kernel& kernel, const Graph& graph, const IndexExpr& threads);

}  // namespace fusec
