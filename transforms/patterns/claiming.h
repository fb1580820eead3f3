// The claims so far, and the decision whether a match may be claimed: its nodes must be one kernel, of a form no worse
// than theirs, and contracting them must close no cycle.
//
//   g = linear(x, wg); a = silu(g)                                       {g, a}: yes
//   k = linear(x, wk); f = softmax(k); v = linear(x, wv); y = sub(v, f)  {v, y}: no, because v would wait for k, and
//                                                                        both can be one launch
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/fusion_plan.h"
#include "schedule/lowering/trial_lowering.h"
#include "transforms/patterns/claim.h"
#include "transforms/patterns/match.h"
#include "transforms/patterns/match_memory.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

bool claims_nodes(Becomes becomes);

class Claiming {
 public:
  Claiming(const Graph& graph, const ClaimLimits& limits, TrialMemory& memory);
  // Claims the matches of a pattern at these roots, from the last to the first.
  void run(const FusionPattern& pattern, const std::vector<NodeId>& roots);
  // Adds a claim that an earlier run made.
  void take_back(PatternClaim made);
  // Why the match may not be claimed; "" if it may.
  std::string why_not(const PatternMatch& match);
  const SearchedGraph& searched() const { return searched_; }
  std::vector<PatternClaim> claims() && { return std::move(claims_); }
  const std::vector<std::uint32_t>& claim_of() const { return claim_of_; }

 private:
  // Matches at a root, reusing the result of a root with equal surroundings, and claims the match if it may be. Only
  // conditions on distant nodes are checked again for a reused match.
  void try_at(NodeId root, MatchMemory& memory);
  // The checks that depend on distant nodes: cycles, and products that wait for others.
  std::string why_not_from_afar(const PatternMatch& match);
  // Products of one operand share a launch (merge-siblings) unless the epilogue of one depends on a reduction of
  // another. Refuses a match with such an epilogue: v = linear(x) in sub(v, f), where f reduces k = linear(x).
  std::string why_waiting(const PatternMatch& match);
  // One of `products` that the nodes depend on through a reduction nearby; kNone if there is none. Elementwise nodes
  // between two products do not count, since they go into an epilogue.
  NodeId made_of_one(const std::vector<NodeId>& nodes, const std::set<NodeId>& products);
  bool reduces(NodeId n);
  // Refuses a product with a reduction of its rows if two kernels are faster. Such a kernel has few blocks.
  std::string why_apart(const std::vector<NodeId>& nodes, double together);
  // Refuses a match that is predicted to be slower than its nodes alone on this target. `together` is in seconds.
  std::string why_nodes_alone(const std::vector<NodeId>& nodes, double together);
  std::pair<double, int> seconds_and_strength(const std::vector<NodeId>& nodes);
  std::set<ValueId> inputs_of(const std::vector<NodeId>& nodes) const;
  // The first node m >= n such that no path from a node after m leads back to m or before. Paths go forward, except
  // inside a claim, where they may go back to its first node; so m is the first node that no claim spans with m + 1.
  NodeId no_path_back_after(NodeId n);
  // As circle_through, but returns "" at once if only the root's results are read outside: no path leads back then.
  std::string circle_outside(const PatternMatch& match);
  // Describes a path that leaves the match and enters it again; "" if there is none. A claim counts as one node:
  // a path that enters it may leave by any of its values.
  std::string circle_through(const PatternMatch& match);
  void add(PatternMatch match);
  std::vector<ValueId> constants_of(const std::vector<NodeId>& nodes) const;

  const Graph& graph_;
  const ClaimLimits limits_;
  SearchedGraph searched_;
  NodeLooks looks_;
  TrialLowering lowering_;
  std::vector<std::uint32_t> claim_of_;  // by node
  std::vector<NodeId> open_end_;         // by node: itself, or a later node if a claim spans it and the next node
  std::vector<PatternClaim> claims_;
  std::size_t roots_left_ = 0;  // roots of the current pattern that are not tried yet
};

}  // namespace fusec
