// Claims: what a pattern has a better form for than the partitioner would find is one group before that begins.
//
//   g = linear(x, wg)                    claim fusec.dual_gemm_swiglu {g, u, a, h}
//   u = linear(x, wu)          ->        the graph with these four nodes side by side
//   a = silu(g); h = mul(a, u)
//
// A match is claimed where it makes one kernel (analysis/lower says so) and contracting it closes no circle. Patterns
// are tried by priority, each from the last node to the first; a node is in one claim at most.
#pragma once

#include <string>
#include <vector>

#include "analysis/trial_lowering.h"
#include "ir/fusion_plan.h"
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

// Why there is no claim of this pattern at this node, for --explain: "" where nothing is in the way, nothing at all
// where the graph does not resemble the pattern there.
struct NotClaimed {
  NodeId root = kNone;
  std::string pattern, why;
};
// Near misses that hold one of these nodes: patterns of which at least two nodes were found. Of a place those that only
// a condition keeps away, or else the few that came nearest; where another pattern claimed it, those that would have
// taken more.
std::vector<NotClaimed> near_misses(const Graph& graph, const PatternList& patterns,
                                    const std::vector<PatternClaim>& claims, const std::vector<NodeId>& nodes,
                                    const ClaimLimits& limits = {});

}  // namespace fusec
