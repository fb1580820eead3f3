// Large models repeat themselves: what a pattern found at one node it finds at every node whose surroundings look the
// same. A search notes which nodes it looked at; elsewhere its answer is taken where the nodes at the same distances
// look like those and are as free as they were.
//
//   layer 1  g1 = linear(x1, w1)  a1 = silu(g1)  h1 = mul(a1, u1)      searched: matches {a1, h1}
//   layer 2  g2 = linear(x2, w2)  a2 = silu(g2)  h2 = mul(a2, u2)      h2, a2, g2 look like h1, a1, g1: {a2, h2}
//
// How a node looks is all that a search could ask of it: op, attributes, types, who reads its results and what it
// reads, other nodes by their distance in the order of the graph. Who reads is no further away than kNear, or stands
// for itself: a mask that all layers read is the same one for all of them.
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

// How nodes look, as numbers: the same number, the same looks.
class NodeLooks {
 public:
  static constexpr std::uint32_t kUnlike = 0;  // any other node, as far as is known

  explicit NodeLooks(const SearchedGraph& searched);
  std::uint32_t of(NodeId n);
  // The node has become another one: from now on it is like none.
  void forget(NodeId n) { known_[n] = kUnlike; }
  // Some result is read so far away that the node stands for itself.
  bool stands_for_itself(NodeId n) const;

 private:
  static constexpr std::uint32_t kNotAsked = 0xffffffffu;
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

// What was found where one pattern was tried at one node, in distances from that node.
class RememberedMatch {
 public:
  bool matched() const { return matched_; }
  // The nodes that the search looked at: how far before the root at most, but for those that stand for themselves.
  NodeId reach() const { return reach_; }
  std::span<const NodeId> far() const { return far_; }
  // What the caller made of the match; the same for all that are taken from here.
  std::optional<bool> accepted;

 private:
  friend class MatchMemory;
  struct Seen {
    NodeId node;  // itself, or its distance before the root
    std::uint32_t looks;
    bool itself, free;
  };
  struct Place {  // of a value: operand or result `number` of a node
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

  // What a search at this root would find, nullptr where none like it is known.
  RememberedMatch* find(NodeId root);
  PatternMatch match(const RememberedMatch& remembered, NodeId root) const;

  // Searches, and remembers what may be: `remembered` is then that, else nullptr.
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
  std::unordered_map<std::uint32_t, std::vector<RememberedMatch>> known_;  // by the looks of the root
};

}  // namespace fusec
