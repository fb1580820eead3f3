// Brings the nodes of a graph into an order in which those of each claim stand side by side, and the claims into that
// of their first nodes. What claims do not hold keeps its order as far as it can.
//
//   g  u  r  a  h      claim {g, u, a, h}   ->   r  g  u  a  h
#pragma once

#include <cstdint>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/canonical_graph.h"

namespace fusec {

// `claim_of` gives each node's claim, kNone where it has none. Claims close no circle.
void bring_claims_together(CanonicalGraph& canonical, std::vector<PatternClaim>& claims,
                           const std::vector<std::uint32_t>& claim_of);

}  // namespace fusec
