// What patterns have claimed so far, and whether a match may be claimed as well: where its nodes are one kernel, of a
// form no worse than theirs, and contracting them closes no circle.
//
//   g = linear(x, wg); a = silu(g)                                       {g, a}: yes
//   k = linear(x, wk); f = softmax(k); v = linear(x, wv); y = sub(v, f)  {v, y}: no, v would wait for k, beside which
//   it
//                                                                        can stand in one launch
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

bool claims_nodes(const FusionPattern& pattern);

class Claiming {
 public:
  Claiming(const Graph& graph, const ClaimLimits& limits, TrialMemory& memory);
  // Claims where the pattern matches at these nodes, from the last to the first.
  void run(const FusionPattern& pattern, const std::vector<NodeId>& roots);
  // What a former run has claimed.
  void take_back(PatternClaim made);
  // "" where the match may be claimed.
  std::string why_not(const PatternMatch& match);
  const SearchedGraph& searched() const { return searched_; }
  std::vector<PatternClaim> claims() && { return std::move(claims_); }
  const std::vector<std::uint32_t>& claim_of() const { return claim_of_; }

 private:
  // What is known of a match whose surroundings look the same holds here as well, but for what depends on nodes far
  // away.
  void try_at(NodeId root, MatchMemory& memory);
  bool is_product(NodeId n) const;
  // Circles may lead anywhere, and what a product waits for may be far before it.
  std::string why_not_from_afar(const PatternMatch& match);
  // Products of one operand stand beside one another in one launch, unless one waits in its epilogue for what is made
  // of another: v = linear(x) in sub(v, what the state holds for k = linear(x)).
  std::string why_waiting(const PatternMatch& match);
  // One of these products of which something is reduced, nearby, that the nodes read; kNone where there is none. What
  // is elementwise between two products goes into their epilogues, and is read once.
  NodeId made_of_one(const std::vector<NodeId>& nodes, const std::set<NodeId>& products);
  bool reduces(NodeId n);
  // A product whose rows are reduced has few blocks, where its rows are few or long: two kernels may take less time.
  std::string why_apart(const std::vector<NodeId>& nodes, double together);
  // A pattern knows a better form, but not what that takes on every target: it is never to be dearer than its nodes.
  std::string why_nodes_alone(const std::vector<NodeId>& nodes, double together);
  std::pair<double, int> seconds_and_strength(const std::vector<NodeId>& nodes);
  std::set<ValueId> inputs_of(const std::vector<NodeId>& nodes) const;
  // The first node from n on behind which nothing leads back: ways go forward, and inside of a claim back to its first
  // node at most, so it is the first that no claim spans together with the next.
  NodeId no_way_back_behind(NodeId n);
  // Ways out of a match that has one result begin at its root, and never lead back.
  std::string circle_outside(const PatternMatch& match);
  // Does a way lead out of the match and back into it? Only values that escape can begin one. Claims made before are
  // one place each: who enters leaves by all their values.
  std::string circle_through(const PatternMatch& match);
  void add(PatternMatch match);
  std::vector<ValueId> constants_of(const std::vector<NodeId>& nodes) const;

  const Graph& graph_;
  const ClaimLimits limits_;
  SearchedGraph searched_;
  NodeLooks looks_;
  TrialLowering lowering_;
  std::vector<std::uint32_t> claim_of_;  // by node
  std::vector<NodeId> open_end_;         // by node: itself, or a later one if a claim spans it and the next
  std::vector<PatternClaim> claims_;
  std::size_t roots_left_ = 0;  // of the pattern that has its turn
};

}  // namespace fusec
