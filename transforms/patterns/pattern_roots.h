// The nodes where a pattern may match: a graph is searched for what its patterns begin with, and for what must stand
// near that.
//
//   mul(silu(~gate), up)     a mul, of which an operand is made by silu, views and casts in between
//
// A quick answer keeps the search of a million nodes short: for every node it is known which ops make its operands, and
// which make theirs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/large_vector.h"
#include "transforms/patterns/pattern.h"

namespace fusec {

// Does a pattern's word mean this op? Besides ops by name: `view` (only reshapes), `permutation` (permute, transpose),
// `piece` (split, chunk, slice, select).
bool means_op(std::string_view word, const OpDef& op);

// One that a chain may hold: each element of its result is made of the elements at that place of its operands (or of
// what is broadcast), or it only reshapes.
bool is_chain_node(const Node& node);

inline constexpr int kLongestChain = 32;  // nodes from a chain's end back to where it begins

class PatternRoots {
 public:
  explicit PatternRoots(const Graph& graph);
  // In order of nodes. The pattern is to live as long as this does.
  std::vector<NodeId> of(const FusionPattern& pattern) const;

 private:
  // What must be found near a root: some op of `near` among those that make its operands, some of `far` among those
  // that make theirs (0: not asked), and all parts, or any.
  struct Needed {
    std::uint64_t near = 0, far = 0;
    bool any = false;
    std::vector<Needed> parts;
    bool nothing() const { return near == 0 && far == 0 && !any && parts.empty(); }
  };
  // The ops that make a node's operands, and that make theirs: a bit each.
  struct Near {
    std::uint64_t near = 0, far = 0;
  };

  bool has(std::string_view word) const;
  // Are the ops there that the term cannot do without?
  bool may_be_met(const PatternTerm& term) const;
  std::uint64_t bits_of(std::string_view word) const;
  Needed needed(const PatternTerm& term, int depth) const;
  static bool is_possible(const Needed& needed, const Near& found);
  void find_near() const;
  void add_chains(const PatternTerm& chain, std::vector<NodeId>& found) const;

  const Graph& graph_;
  std::span<const NodeId> nodes_of(std::size_t op) const {
    return {nodes_.data() + begin_[op], nodes_.data() + begin_[op + 1]};
  }
  std::vector<const OpDef*> ops_;     // in order of first node
  LargeVector<std::uint32_t> op_of_;  // by node: in ops_
  LargeVector<NodeId> nodes_;         // by op; those of ops_[i] begin at begin_[i]
  std::vector<std::size_t> begin_;
  mutable std::unordered_map<std::string_view, bool> has_;  // by a pattern's word
  mutable LargeVector<Near> near_;                          // made when the first pattern asks
};

}  // namespace fusec
