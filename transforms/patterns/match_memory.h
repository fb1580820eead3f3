// Reuses pattern searches in models of equal layers. A search records the nodes that it examined. At another root its
// result is reused if the nodes at the same distances look the same and are as free.
//
//   layer 1  g1 = linear(x1, w1)  a1 = silu(g1)  h1 = mul(a1, u1)      searched: matches {a1, h1}
//   layer 2  g2 = linear(x2, w2)  a2 = silu(g2)  h2 = mul(a2, u2)      h2, a2, g2 look like h1, a1, g1: {a2, h2}
//
// The looks of a node are all that a search may ask about it: op, attributes, types, operands and readers, where other
// nodes are given by their distance in the order of the graph. A node with a reader more than kNear away (a mask that
// all layers read) is compared by identity instead.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/large_vector.h"
#include "transforms/patterns/match.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

// Numbers nodes by their looks: nodes with the same number look the same.
class NodeLooks {
 public:
  static constexpr std::uint32_t kUnlike = 0;  // looks like no other node

  explicit NodeLooks(const SearchedGraph& searched);
  std::uint32_t of(NodeId n);
  // The node was rewritten: from now on it looks like no other.
  void forget(NodeId n) { known_[n] = kUnlike; }
  // Whether a result is read more than kNear away, so that the node is compared by identity.
  bool stands_for_itself(NodeId n) const;

 private:
  static constexpr std::uint32_t kUnknown = 0xffffffffu;
  static constexpr NodeId kNear = 4096;

  bool is_read_far_away(ValueId v) const;
  bool write_key(NodeId n);
  bool write_readers(NodeId n, ValueId v);
  void write_operand(NodeId n, ValueId v);

  const SearchedGraph& searched_;
  LargeVector<std::uint32_t> known_;  // by node
  std::vector<std::uint64_t> key_;
  struct KeyHash {
    std::size_t operator()(const std::vector<std::uint64_t>& key) const;
  };
  std::unordered_map<std::vector<std::uint64_t>, std::uint32_t, KeyHash> numbers_;
};

// The result of one search. Nodes are distances before the root.
class RememberedMatch {
 public:
  bool matched() const { return matched_; }
  // The greatest distance of an examined node, apart from those compared by identity; these are in far().
  NodeId reach() const { return reach_; }
  std::span<const NodeId> far() const { return far_; }
  // Whether the caller accepted the match. Holds for every reuse.
  std::optional<bool> accepted;

 private:
  friend class MatchMemory;
  struct Seen {
    NodeId node;  // the node if `itself`, else its distance before the root
    std::uint32_t looks;
    bool itself, free;
  };
  struct Place {  // a value as operand or result `number` of a node
    NodeId distance = kNone;
    std::uint32_t number = 0;
    bool is_result = false;
  };
  std::vector<Seen> seen_;
  bool matched_ = false;
  NodeId reach_ = 0;
  std::vector<NodeId> nodes_, far_;
  std::vector<Place> values_;
  std::vector<std::optional<AttributeValue>> attributes_;
};

// The searches of one pattern.
class MatchMemory {
 public:
  MatchMemory(const SearchedGraph& searched, NodeLooks& looks, const FusionPattern& pattern);

  // The remembered result for this root, nullptr if there is none.
  RememberedMatch* find(NodeId root);
  PatternMatch match(const RememberedMatch& remembered, NodeId root) const;

  // Searches. Points `remembered` to the result if it can be reused, else to nullptr.
  std::optional<PatternMatch> search(NodeId root, RememberedMatch*& remembered);

 private:
  bool is_like(const RememberedMatch& remembered, NodeId root);
  bool note_seen(NodeId root, RememberedMatch& remembered);
  bool note_match(const PatternMatch& match, RememberedMatch& remembered) const;
  bool is_free(NodeId n) const { return !searched_.taken[n]; }

  const SearchedGraph& searched_;
  NodeLooks& looks_;
  const FusionPattern& pattern_;
  const bool may_remember_;
  std::vector<NodeId> seen_;
  std::unordered_map<std::uint32_t, std::vector<RememberedMatch>> known_;  // by looks of the root
};

}  // namespace fusec
