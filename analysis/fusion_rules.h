// The policy of the partitioner: may this group join that one? The answer is yes (if the nodes between allow it), or
// no with the rule that forbids it. Who walks the graph and merges is transforms/partition; it knows no pattern kind.
//
// Three phases, each over all nodes in order, each asking whether a node may join its immediate post-dominator:
//   0  complex ops take their elementwise followers; elementwise and broadcast nodes join injective nodes,
//      reductions, and groups that hold a complex op
//   1  elementwise and broadcast nodes once more; injective nodes and tuples join injective nodes
//   2  what is at most injective joins a tuple that phase 1 fused into an injective node
#pragma once

#include <cstdint>

#include "ir/fusion_decision.h"
#include "ir/op_pattern.h"

namespace fusec {

// A set of pattern kinds.
class PatternSet {
 public:
  constexpr PatternSet() = default;
  static constexpr PatternSet at_most(OpPattern pattern) {
    return PatternSet(static_cast<std::uint8_t>((2u << static_cast<unsigned>(pattern)) - 1));
  }
  constexpr PatternSet with(OpPattern pattern) const {
    return PatternSet(static_cast<std::uint8_t>(bits_ | (1u << static_cast<unsigned>(pattern))));
  }
  constexpr bool has(OpPattern pattern) const { return ((bits_ >> static_cast<unsigned>(pattern)) & 1) != 0; }

 private:
  explicit constexpr PatternSet(std::uint8_t bits) : bits_(bits) {}
  std::uint8_t bits_ = 0;
};

// A node that asks to join its immediate post-dominator, as the groups are now.
struct JoinQuestion {
  int phase;
  OpPattern source;                // the node; a complex op's kind where it already leads a group that holds one
  OpPattern path_pattern;          // the greatest kind on any edge from the node to its post-dominator
  OpPattern post_dominator;        // the post-dominator itself, likewise
  OpPattern post_dominator_group;  // the group it is in
};

struct JoinAnswer {
  // kJoined: yes, provided that the groups of the nodes between are in `between` and the post-dominator's in `end`.
  // kUndecided: not this phase's business. Otherwise why not.
  FusionRule rule = FusionRule::kUndecided;
  PatternSet between, end;
  FusionRule if_blocked_between = FusionRule::kUndecided;
  FusionRule if_blocked_at_end = FusionRule::kUndecided;
};

JoinAnswer may_join(const JoinQuestion& question);

// What a node's kind says before anything is asked; kUndecided: it may ask.
FusionRule may_ask(OpPattern source);

}  // namespace fusec
