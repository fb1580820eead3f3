// A result that begins as a copy of an operand and is then changed in places (scatter, index_put) needs no copy where
// the operand dies there, or is the input into whose buffer the result belongs: the two share one buffer.
//
//   copy(cache; next), put(keys, at; next)   ->   put(keys, at; next)      next lives where cache does
#pragma once

#include "codegen/launch/lower_plan.h"

namespace fusec {

// Takes such copies, and kernels that nobody launches any more, out of the plan.
void update_in_place(const Graph& graph, LoweredPlan& plan);

}  // namespace fusec
