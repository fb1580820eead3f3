// Attention that no kernel has a form for (heads of more than 256, heads whose size is a symbol) becomes what its
// formula says as ops: two products with a softmax between, each with the forms of its own. As one kernel it would
// compute the scores anew for every column of the result.
//
//   y = scaled_dot_product_attention(q, k, v, scale=s)
//     s32 = matmul(cast(q), transpose(cast(k))) * s      sums as the op has them, rounded nowhere
//     p   = cast(softmax(s32))                           to the factors' dtype, as attention's kernels do
//     y   = matmul(p, v)
//
// Masks and grouped heads as in ir/ops/attention: a row whose keys are all masked out is 0. Only where that is
// predicted to be faster, and after patterns have been recognized: none makes the op of this again.
#pragma once

#include "schedule/lowering/trial_lowering.h"
#include "transforms/canonical_graph.h"

namespace fusec {

void decompose_attention(CanonicalGraph& canonical, TrialMemory& memory);

}  // namespace fusec
