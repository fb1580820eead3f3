// The graph as fusion sees it: vertices with an op pattern, and edges from each value to its consumers.
//
//     a ──▶ b ──▶ d          consumers(a) = {b, c}
//     └───▶ c ───▶┘          consumers(b) = consumers(c) = {d}
//
// Graph inputs, constants and numbers are not vertices, because nothing fuses with them. A node with several results is
// one tuple vertex plus one item vertex per used result. An edge has no kind of its own: the kind is the pattern of its
// consumer. A consumer that reads an operand twice has one edge from it; this changes neither dominators nor paths.
// Vertices are in topological order.
#pragma once

#include <cstdint>
#include <span>

#include "ir/digraph.h"
#include "ir/op_pattern.h"

namespace fusec {

using Vertex = std::uint32_t;
inline constexpr Vertex kNoVertex = 0xffffffff;

struct ForwardGraph {
  LargeVector<OpPattern> pattern;  // by vertex
  LargeVector<std::uint8_t>
      external;   // by vertex; 1: a graph output, which must be stored and never fuses into a consumer
  Digraph edges;  // to consumers

  Vertex size() const { return static_cast<Vertex>(pattern.size()); }
  std::span<const Vertex> consumers(Vertex v) const { return edges.successors(v); }
};

// Builds a ForwardGraph from vertices in topological order, each followed by its operands.
class ForwardGraphBuilder {
 public:
  void reserve(std::size_t vertices, std::size_t operands);
  Vertex add(OpPattern pattern);      // adds a vertex without operands
  void add_operand(Vertex producer);  // adds an operand of the newest vertex; throws unless it is an earlier vertex
  void mark_external(Vertex v) { graph_.external[v] = 1; }
  OpPattern pattern(Vertex v) const { return graph_.pattern[v]; }
  ForwardGraph finish() &&;

 private:
  ForwardGraph graph_;
  Digraph operands_;            // edges from each vertex but the newest to its operands
  LargeVector<Vertex> latest_;  // by vertex: its latest consumer
};

}  // namespace fusec
