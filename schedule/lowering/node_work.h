// The floating-point operations of each node's formula (analysis/kernel/formula_flops), with symbols at their hints.
// Nodes of one group signature are counted once.
//
//   linear [M, K] x [N, K]     2 M N K      a multiplication and an addition for every k
//   silu [M, N]                3 M N        the sigmoid counts two, the multiplication one
//   reshape, cast, sort        0            moves, conversions and comparisons are not counted
#pragma once

#include <cstdint>
#include <unordered_map>

#include "analysis/group_signature.h"
#include "ir/graph.h"

namespace fusec {

class NodeWork {
 public:
  explicit NodeWork(const Graph& graph);
  // Returns at most 2^63-1.
  std::int64_t flops(NodeId n);

 private:
  const Graph& graph_;
  GroupSignatures signatures_;
  std::unordered_map<GroupKey, std::int64_t, GroupKeyHash> known_;
};

}  // namespace fusec
