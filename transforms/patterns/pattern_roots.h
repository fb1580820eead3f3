// Finds the nodes where a pattern may match, by a quick necessary condition: the root's op, the ops that make its
// operands, and the ops that make theirs.
//
//   mul(silu(~gate), up)     a mul with an operand that silu makes, possibly with views and casts in between
//
// The ops near each node are 64-bit sets, so that a graph of a million nodes is searched quickly.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/large_vector.h"
#include "transforms/patterns/pattern.h"
#include "transforms/patterns/pattern_list.h"

namespace fusec {

// Whether a pattern's word means this op: its name, or one of the classes `view` (only reshapes), `permutation` and
// `transposed` (permute, transpose), `piece` (split, chunk, slice, select).
bool means_op(std::string_view word, const OpDef& op);

// Whether a chain may include the node: elementwise (with broadcast operands), or only a reshape.
bool is_chain_node(const Node& node);

inline constexpr int kLongestChain = 32;  // nodes from the end of a chain back to its beginning

class PatternRoots {
 public:
  explicit PatternRoots(const Graph& graph);
  // The possible roots, sorted. The pattern must outlive this object.
  std::vector<NodeId> of(const FusionPattern& pattern) const;
  // The possible roots of a listed pattern. A pattern whose needed ops the graph lacks is not parsed.
  std::vector<NodeId> of(const ListedPattern& listed) const;

 private:
  // A condition on the ops near a root: one op of `near` makes an operand, one op of `far` makes an operand of an
  // operand (0: no condition), and all of `parts` hold (or any of them, if `any`).
  struct Needed {
    std::uint64_t near = 0, far = 0;
    bool any = false;
    std::vector<Needed> parts;
    bool nothing() const { return near == 0 && far == 0 && !any && parts.empty(); }
  };
  // Bit sets of the ops that make a node's operands, and of the ops that make theirs.
  struct Near {
    std::uint64_t near = 0, far = 0;
  };

  bool has(std::string_view word) const;
  bool has_needed(std::string_view needed_ops) const;
  // Whether the graph has all ops that the term needs.
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
  LargeVector<std::uint32_t> op_of_;  // by node: index into ops_
  LargeVector<NodeId> nodes_;         // grouped by op; those of ops_[i] begin at begin_[i]
  std::vector<std::size_t> begin_;
  mutable std::unordered_map<std::string_view, bool> has_;  // by a pattern's word
  mutable LargeVector<Near> near_;                          // by node; made by find_near at the first use
};

}  // namespace fusec
