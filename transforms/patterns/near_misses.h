// For --explain: patterns that nearly claimed the given nodes, and what prevented it.
//
//   a = silu(g); h = mul(a, u); r = add(a, 1)     h: fusec.gated_unit, "a is needed by r as well"
#pragma once

#include <string>
#include <vector>

#include "ir/fusion_plan.h"
#include "transforms/patterns/claim.h"
#include "transforms/patterns/pattern_list.h"

namespace fusec {

// A pattern that nearly matched at a root, and the reason why it made no claim there.
struct NotClaimed {
  NodeId root = kNone;
  std::string pattern, why;
};
// Near misses that include one of `nodes`: at least two nodes of the pattern were found, or the user asked for the
// pattern. For each root, returns the patterns that only a condition prevents, or else the few that came nearest. If
// another pattern claimed the root, returns only patterns that would have claimed more nodes.
std::vector<NotClaimed> near_misses(const Graph& graph, const PatternList& patterns,
                                    const std::vector<PatternClaim>& claims, const std::vector<NodeId>& nodes,
                                    const ClaimLimits& limits = {});

}  // namespace fusec
