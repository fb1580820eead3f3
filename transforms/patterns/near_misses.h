// Where patterns nearly claimed what --explain asks about, and what was in the way.
//
//   a = silu(g); h = mul(a, u); r = add(a, 1)     h: fusec.gated_unit, "a is needed by r as well"
#pragma once

#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/patterns/claim.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

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
