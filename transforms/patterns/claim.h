// Claims: what a pattern has a better form for than the partitioner would find is one group before that begins.
//
//   g = linear(x, wg)                    claim fusec.dual_gemm_swiglu {g, u, a, h}
//   u = linear(x, wu)          ->        the graph with these four nodes side by side
//   a = silu(g); h = mul(a, u)
//
// A match is claimed where it makes one kernel (schedule/lowering/lower_group says so) and contracting it closes no
// circle. Patterns are tried by priority, each from the last node to the first; a node is in one claim at most.
#pragma once

#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "schedule/lowering/trial_lowering.h"
#include "transforms/canonical_graph.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

// What a group may have at most (see FuseOptions).
struct ClaimLimits {
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;  // 0: no limit
};

// Brings the nodes into an order in which those of a claim stand side by side. `memory`: where what was found out by
// lowering is kept for the passes after this one.
std::vector<PatternClaim> claim_patterns(CanonicalGraph& canonical, const PatternList& patterns,
                                         const ClaimLimits& limits = {}, TrialMemory* memory = nullptr);

}  // namespace fusec
