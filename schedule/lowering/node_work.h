// What each node's formula asks for: operations as schedule/cost/work counts them, each distinct value of the formula
// once. Nodes that agree in op, attributes and types are lowered once. Symbols stand at their hints.
//
//   linear [M, K] x [N, K]     2 M N K      a multiplication and an addition for every k
//   silu [M, N]                3 M N        the sigmoid counts two, the multiplication one
//   reshape, cast, sort        0            moving, converting and comparing are no operations
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
  // At most 2^63-1.
  std::int64_t flops(NodeId n);

 private:
  struct Known;
  const Graph& graph_;
  std::unique_ptr<Known> known_;  // of nodes that agree in op, attributes and types
};

}  // namespace fusec
