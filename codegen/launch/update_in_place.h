// Removes the copy before an op that overwrites parts of its operand (scatter, index_put). The copy is not needed if
// the operand dies there, or if it is the input that provides the result's buffer. Both values then share one buffer.
//
//   copy(cache; next), put(keys, at; next)   ->   put(keys, at; next)      next shares cache's buffer
#pragma once

#include "codegen/launch/lower_plan.h"

namespace fusec {

// Removes those copies from the plan, and kernels that no step launches any more.
void update_in_place(const Graph& graph, LoweredPlan& plan);

}  // namespace fusec
