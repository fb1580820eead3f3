// Rewriting patterns are tried in rounds, and most rounds change little. A root is settled for a pattern if the pattern
// did not match there and none of the examined nodes has changed since. It is then not tried again.
//
//   round 1   n = linear(x, w)  s = softmax(n)     no attention at s: examined s and n
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

  // Begins a round on a graph with this many nodes.
  void begin_round(std::size_t nodes);
  // Marks a node as changed: it was rewritten, became part of a match, or got other readers.
  void touch(NodeId n) { touched_[n / 64] |= std::uint64_t{1} << (n % 64); }
  void touch_operands(const Graph& graph, const Node& node);

  // Whether the pattern is known not to match at this root. Call it for the roots from the last to the first.
  bool is_settled(std::size_t pattern, NodeId root);
  // Notes that the pattern does not match. The search examined nodes up to `reach` before the root, and those in `far`.
  void note(std::size_t pattern, NodeId root, NodeId reach, std::span<const NodeId> far);

  // Ends the round. `order` lists the remaining nodes in their new order.
  void end_round(const Graph& graph, std::span<const NodeId> order);

 private:
  struct Settled {
    NodeId root, reach;
    std::uint32_t far;  // index into far_, kNone for none
  };
  bool is_untouched(const Settled& settled) const;

  std::size_t nodes_ = 0;                      // nodes of the graph when the round began
  std::vector<std::uint64_t> touched_;         // one bit a node
  std::vector<std::vector<Settled>> settled_;  // by pattern, from the first root to the last
  std::vector<std::vector<Settled>> next_;     // for the next round, from the last root to the first
  std::vector<std::vector<NodeId>> far_;
};

}  // namespace fusec
