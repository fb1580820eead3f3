// A key that is equal for groups that differ in names only: the same ops, attributes, types and wiring. What is decided
// about the first of several equal layers holds for the others, with their values in place of its values.
//
//   h0 = relu(linear(x, w0)), h1 = relu(linear(h0, w1))      one key, and { x -> h0, w0 -> w1, h0 -> h1 }
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace fusec {

using GroupKey = std::vector<std::uint64_t>;
struct GroupKeyHash {
  std::size_t operator()(const GroupKey& key) const;
};

class GroupSignatures {
 public:
  // Keys of two graphs may be compared if one graph was made of the other (Graph::emptied, Graph::rearrange), so that
  // ids of types and attributes mean the same in both. Ids of values do not, so each graph needs a `graph_number` of
  // its own then.
  explicit GroupSignatures(const Graph& graph, std::uint64_t graph_number = 0)
      : graph_(graph), graph_number_(graph_number) {}

  // `nodes` in topological order; `outputs`, in that order, are the results that are needed outside. The key is valid
  // until the next call.
  const GroupKey& of(std::span<const NodeId> nodes, std::span<const ValueId> outputs);
  // Operands of the last group from outside, in the order of their first use. Dimensions, constants with data, operands
  // of tuples and fields of tuples are not among them: they are the same values in all groups of the key.
  const std::vector<ValueId>& operands() const { return operands_; }

 private:
  void write_operand(std::span<const NodeId> nodes, const Node& reader, ValueId v);

  const Graph& graph_;
  std::uint64_t graph_number_;
  GroupKey key_;
  std::vector<ValueId> operands_;
  std::vector<std::uint32_t> operand_number_, stamp_;  // by value; numbers of the key with the current stamp
  std::uint32_t now_ = 0;
};

struct GroupParts {
  std::vector<NodeId> nodes;
  std::vector<ValueId> operands;  // GroupSignatures::operands
};

// Maps nodes and values of group `from` to those of group `to`. Both groups have one key.
class GroupRenaming {
 public:
  GroupRenaming(const Graph& graph, const GroupParts& from, const GroupParts& to)
      : graph_(graph), from_(from), to_(to) {}
  NodeId node(NodeId n) const;
  ValueId value(ValueId v) const;  // `v` itself if it is the same in both groups

 private:
  const Graph& graph_;
  const GroupParts &from_, &to_;
};

}  // namespace fusec
