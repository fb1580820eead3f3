// Reorders the nodes of a graph so that the nodes of each claim are contiguous, and sorts the claims by their first
// nodes. Other nodes keep their order as far as possible.
//
//   g  u  r  a  h      claim {g, u, a, h}   ->   r  g  u  a  h
#pragma once

#include <cstdint>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/canonical_graph.h"

namespace fusec {

// `claim_of`: by node, its claim, or kNone. The claims must close no cycle.
void merge_claims(CanonicalGraph& canonical, std::vector<PatternClaim>& claims,
                  const std::vector<std::uint32_t>& claim_of);

}  // namespace fusec
