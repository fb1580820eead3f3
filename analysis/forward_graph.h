// The graph as fusion sees it: vertices with an op pattern, and edges from each value to its consumers.
//
//     a ──▶ b ──▶ d          consumers(a) = {b, c}
//     └───▶ c ───▶┘          consumers(b) = consumers(c) = {d}
//
// Leaves (graph inputs, constants, numbers) are not in it: nothing ever fuses with them. A node with several results
// stands for a tuple vertex and one item vertex for every result in use. The kind of an edge is its
// consumer's pattern, so edges carry none; an operand that is used twice by one consumer is one edge here, which
// changes neither dominators, nor counts, nor paths. Compressed sparse rows, vertices in topological order.
#pragma once

#include <cstdint>
#include <span>

#include "ir/large_vector.h"
#include "ir/op_pattern.h"

namespace fusec {

using Vertex = std::uint32_t;
inline constexpr Vertex kNoVertex = 0xffffffff;

struct ForwardGraph {
  LargeVector<OpPattern> pattern;      // of each vertex
  LargeVector<std::uint8_t> external;  // 1: the value is a graph output, so it must be stored and never fuses forward
  LargeVector<std::uint32_t> first;    // consumers of v: targets[first[v]] .. targets[first[v + 1]]
  LargeVector<Vertex> targets;

  Vertex size() const { return static_cast<Vertex>(pattern.size()); }
  std::span<const Vertex> consumers(Vertex v) const {
    return {targets.data() + first[v], targets.data() + first[v + 1]};
  }
};

// Collects vertices in topological order, each with its operands.
class ForwardGraphBuilder {
 public:
  void reserve(std::size_t vertices, std::size_t operands);
  Vertex add(OpPattern pattern);      // begins a vertex without operands
  void add_operand(Vertex producer);  // of the vertex added last; earlier than it
  void mark_external(Vertex v) { graph_.external[v] = 1; }
  OpPattern pattern(Vertex v) const { return graph_.pattern[v]; }
  ForwardGraph finish() &&;

 private:
  ForwardGraph graph_;
  LargeVector<std::uint32_t> operand_first_;  // of each vertex, into operands_
  LargeVector<Vertex> operands_;
};

}  // namespace fusec
