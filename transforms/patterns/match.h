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
  std::size_t nodes_found = 0;
  std::string why;
};

// `miss`, where given, is filled in when there is no match.
std::optional<PatternMatch> match_pattern(const SearchedGraph& searched, const FusionPattern& pattern, NodeId root,
                                          NearMiss* miss = nullptr);

// The nodes where a pattern may match, by op: a graph is searched for what its patterns begin with.
class PatternRoots {
 public:
  explicit PatternRoots(const Graph& graph);
  // Those of the graph's ops that the pattern may begin with; none where the graph lacks an op that it needs.
  std::vector<const OpDef*> ops(const FusionPattern& pattern) const;
  const std::vector<NodeId>& nodes(const OpDef* op) const;

 private:
  std::vector<std::pair<const OpDef*, std::vector<NodeId>>> by_op_;  // in order of first node
};

}  // namespace fusec
