// The floating-point operations of each node's formula (analysis/kernel/formula_flops), with symbols at their hints.
// Nodes that agree in op, attributes and types are counted once.
//
//   linear [M, K] x [N, K]     2 M N K      a multiplication and an addition for every k
//   silu [M, N]                3 M N        the sigmoid counts two, the multiplication one
//   reshape, cast, sort        0            moves, conversions and comparisons are not counted
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/graph.h"

namespace fusec {

class NodeWork {
 public:
  explicit NodeWork(const Graph& graph);
  ~NodeWork();
  NodeWork(NodeWork&&) = delete;
  // Returns at most 2^63-1.
  std::int64_t flops(NodeId n);

 private:
  struct Known;
  const Graph& graph_;
  std::unique_ptr<Known> known_;  // by op, attributes and types
};

}  // namespace fusec
