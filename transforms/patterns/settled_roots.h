// Patterns that rewrite are tried in rounds, of which most change little: where a pattern did not match, and nothing
// that was looked at has changed since, it does not match in the next round either, and is not tried again.
//
//   round 1   n = linear(x, w)  s = softmax(n)     no attention at s: looked at s and n
//   round 2   the same s and n                     not searched
//   round 3   n was replaced: it is touched        searched
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace fusec {

class SettledRoots {
 public:
  explicit SettledRoots(std::size_t patterns) : settled_(patterns), next_(patterns) {}

  // A round begins, on a graph of this many nodes.
  void begin_round(std::size_t nodes);
  // The node is not what it was, is part of a match, or others read it.
  void touch(NodeId n) { touched_[n / 64] |= std::uint64_t{1} << (n % 64); }
  void touch_operands(const Graph& graph, const Node& node);

  // Whether the pattern is known not to match at this root. To be asked of the roots from the last to the first.
  bool is_settled(std::size_t pattern, NodeId root);
  // It does not match: no node was looked at that is further than `reach` before the root, but those of `far`.
  void note(std::size_t pattern, NodeId root, NodeId reach, std::span<const NodeId> far);

  // The round ends: of the graph these nodes stay, in this order.
  void end_round(const Graph& graph, std::span<const NodeId> order);

 private:
  struct Settled {
    NodeId root, reach;
    std::uint32_t far;  // in far_, kNone for none
  };
  bool is_untouched(const Settled& settled) const;

  std::size_t nodes_ = 0;                      // of the graph when the round began
  std::vector<std::uint64_t> touched_;         // a bit for each of them
  std::vector<std::vector<Settled>> settled_;  // by pattern, from the first root to the last
  std::vector<std::vector<Settled>> next_;     // for the next round, from the last root to the first
  std::vector<std::vector<NodeId>> far_;
};

}  // namespace fusec
