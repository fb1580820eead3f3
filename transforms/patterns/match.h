// Does a pattern match at a node, and if not, how near did it come?
//
//   pattern  mul(act: silu(gate), up)          graph  g = linear(x, wg)
//                                                     a = silu(g)
//                                                     h = mul(u, a)      at h: gate = g, up = u, act = a; nodes {a, h}
//
// A match takes nothing away that is needed elsewhere: what its inner nodes make is read inside alone, except where the
// pattern lets it escape. Time is bounded for a fixed pattern: what a node offers is tried out with backtracking, up to
// a number of steps that no sensible pattern reaches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transforms/patterns/pattern.h"

namespace fusec {

// How far a pattern came: the more of its nodes were found, the nearer.
struct NearMiss {
  std::vector<NodeId> nodes;  // those found, in the order in which they were
  bool whole = false;         // all of them: only what the pattern asks of them is not so
  bool specific = false;      // it is a condition, a number or an attribute, or what stands in between
  std::string why;
};

// `miss`, where given, is filled in when there is no match. `seen`, where given, gets the nodes that the answer depends
// on, some perhaps several times; what makes their operands, which may have been looked at as well, it need not get.
std::optional<PatternMatch> match_pattern(const SearchedGraph& searched, const FusionPattern& pattern, NodeId root,
                                          NearMiss* miss = nullptr, std::vector<NodeId>* seen = nullptr);

}  // namespace fusec
