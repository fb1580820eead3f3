// Splits attention that has no kernel form (head size above 256 or a symbol) into two matmuls with a softmax between,
// each with its own kernel form. As one kernel it would recompute the scores for every column of the result.
//
//   y = scaled_dot_product_attention(q, k, v, scale=s)
//     s32 = matmul(cast(q), transpose(cast(k))) * s      float32 scores, as the op accumulates them
//     p   = cast(softmax(s32))                           to the operands' dtype, as attention kernels do
//     y   = matmul(p, v)
//
// Masks and grouped heads follow ir/ops/attention: a row whose keys are all masked out is 0. Only attention that is
// predicted to be faster this way is split. Runs after pattern recognition, which would rebuild the op.
#pragma once

#include "schedule/lowering/trial_lowering.h"
#include "transforms/canonical_graph.h"

namespace fusec {

void decompose_attention(CanonicalGraph& canonical, TrialMemory& memory);

}  // namespace fusec
