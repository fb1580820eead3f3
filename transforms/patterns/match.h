// Matches a pattern at a node, and reports how near it came if it does not match.
//
//   pattern  mul(act: silu(gate), up)          graph  g = linear(x, wg)
//                                                     a = silu(g)
//                                                     h = mul(u, a)      at h: gate = g, up = u, act = a; nodes {a, h}
//
// Results of inner nodes must be read inside the match only, unless the pattern lets them escape. The search backtracks
// and gives up after 20000 steps, which no sensible pattern reaches; so the time per node is bounded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

// How far a search came: the more nodes were found, the nearer.
struct NearMiss {
  std::vector<NodeId> nodes;  // found nodes, in the order of the search
  bool whole = false;         // all nodes were found, but a condition failed
  bool specific = false;      // a condition, number, attribute or a node in between is to blame
  std::string why;
};

// Fills in `miss` (if given) when there is no match. Appends to `seen` (if given) the nodes that the answer depends on,
// possibly repeated. The producers of their operands may matter as well and need not be listed.
std::optional<PatternMatch> match_pattern(const SearchedGraph& searched, const FusionPattern& pattern, NodeId root,
                                          NearMiss* miss = nullptr, std::vector<NodeId>* seen = nullptr);

}  // namespace fusec
