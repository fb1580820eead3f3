// Claims: a pattern makes its nodes one group before the partitioner runs, for kernels that the partitioner would not
// find.
//
//   g = linear(x, wg)                    claim fusec.dual_gemm_swiglu {g, u, a, h}
//   u = linear(x, wu)          ->        the graph with these four nodes side by side
//   a = silu(g); h = mul(a, u)
//
// A match is claimed if it lowers to one kernel (schedule/lowering/lower_group.h) and contracting it closes no cycle.
// Patterns are tried by priority, each from the last node to the first. A node is in at most one claim.
#pragma once

#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "schedule/lowering/trial_lowering.h"
#include "transforms/canonical_graph.h"
#include "transforms/patterns/pattern_list.h"

namespace fusec {

// Limits of a group, as in FuseOptions.
struct ClaimLimits {
  std::uint32_t max_fused_ops = 256;
  std::uint32_t max_args = 0;  // 0: no limit
};

// Finds claims, and reorders the graph so that the nodes of each claim are contiguous. Trial lowerings are kept in
// `memory` for later passes.
std::vector<PatternClaim> claim_patterns(CanonicalGraph& canonical, const PatternList& patterns,
                                         const ClaimLimits& limits = {}, TrialMemory* memory = nullptr);

}  // namespace fusec
