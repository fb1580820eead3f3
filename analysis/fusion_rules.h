// The policy of the partitioner: may a node's group join the group of its immediate post-dominator? `may_join` answers
// yes, on conditions for the groups in between, or no with the rule that forbids it. The mechanism that walks the graph
// and merges is transforms/partition; it tests no pattern kinds.
//
// Each of three phases visits all nodes in order:
//   0  complex ops take their elementwise followers; elementwise and broadcast nodes join injective nodes,
//      reductions, and groups that hold a complex op
//   1  elementwise and broadcast nodes once more; injective nodes and tuples join injective nodes
//   2  nodes that are at most injective join a tuple that phase 1 fused into an injective node
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

// The state of a node and of its immediate post-dominator when the node tries to join.
struct JoinQuestion {
  int phase;
  OpPattern source;          // kind of the node; kOutEwiseFusable if the node leads a group that holds a complex op
  OpPattern path_pattern;    // the greatest kind on any edge from the node to its post-dominator
  OpPattern post_dominator;  // kind of the post-dominator, adjusted as `source` is
  OpPattern post_dominator_group;  // kind of the post-dominator's group
};

struct JoinAnswer {
  // kJoined: yes, if every group on the path has a kind in `between` and the post-dominator's group has one in `end`.
  // kUndecided: this phase does not decide. Any other value: no, and why.
  FusionRule rule = FusionRule::kUndecided;
  PatternSet between, end;
  FusionRule if_blocked_between = FusionRule::kUndecided;
  FusionRule if_blocked_at_end = FusionRule::kUndecided;
};

JoinAnswer may_join(const JoinQuestion& question);

// Returns why a node of this kind never joins its post-dominator; kUndecided if it may try.
FusionRule may_fuse_kind(OpPattern source);

}  // namespace fusec
